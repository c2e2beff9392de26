"""First import of every stage script: ensures the right Python, sets thread spinning and portability pins, and reads
the code before any of it is loaded.
"""

from transformer.core.process import limit_openmp_spin, require_libraries, require_module

limit_openmp_spin()  # before torch is loaded
require_module()
require_libraries()  # before any of them is imported

from transformer.core.code import code_at_start  # noqa: E402

code_at_start()  # before anything else is loaded: the code that runs is the code that was read

from transformer.core.portable import pin_stage  # noqa: E402

pin_stage()  # before torch and NumPy are loaded
