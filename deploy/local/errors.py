"""What can go wrong on the user's side, said so that he can mend it."""


class LocalError(Exception):
    """Shown to the user as it is, without a traceback: what is wrong, and the way out."""
