export RESTIC_REPOSITORY=s3:http://$HOST/backups RESTIC_PASSWORD=secret RESTIC_CACHE_DIR=cache
restic init
restic backup tree
cp big tree/
restic backup tree
restic check --read-data
restic restore latest --target restored
diff -r tree restored/tree
restic forget --keep-last 1 --prune
restic check --read-data
