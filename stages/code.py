"""code: writes what the code of each stage means, which DVC watches in place of the code."""

from transformer.core.process import require_libraries, require_module

require_module()
require_libraries()

import sys  # noqa: E402

from transformer.core.code import write_code  # noqa: E402
from transformer.core.errors import UserError  # noqa: E402
from transformer.core.task import open_task  # noqa: E402


def main() -> None:
    """transformer/, stages/ -> reports/TASK/code/STAGE.json."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m stages.code TASK")
    try:
        changed = write_code(open_task(sys.argv[1]))
    except UserError as error:
        sys.exit(f"error: code@{sys.argv[1]}: {error}")
    if changed:
        print(f"code@{sys.argv[1]}: changed for {', '.join(changed)}", file=sys.stderr)


if __name__ == "__main__":
    main()
