"""`mindstream studio` and `mindstream demo`."""
