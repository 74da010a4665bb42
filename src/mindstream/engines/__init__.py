"""Where work is done that is more than one process should do: processes of this machine, or Ray's workers."""
