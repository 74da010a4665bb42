"""`mindstream plan`."""
