"""The one exception that a user can cause."""


class UserError(Exception):
    """Something the user can mend: the message is one line that says what, where and what to do."""
