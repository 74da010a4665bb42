"""`mindstream town`."""
