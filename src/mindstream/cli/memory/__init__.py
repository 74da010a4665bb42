"""`mindstream memory`."""
