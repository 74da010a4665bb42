"""What `mindstream doctor` looks at, and how what is damaged is mended."""
