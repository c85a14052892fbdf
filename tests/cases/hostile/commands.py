"""`pytest x; touch zq` and `python -c 'touch zq'` are no commands of ours."""
