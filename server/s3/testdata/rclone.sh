printf '[holdfast]\ntype = s3\nprovider = Other\nendpoint = http://%s\nregion = us-east-1\naccess_key_id = %s\nsecret_access_key = %s\nforce_path_style = true\n' \
  "$HOST" "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" >config
rclone() { command rclone --config config --s3-upload-cutoff 5M --s3-chunk-size 5M "$@"; }
rclone mkdir holdfast:files
rclone sync tree holdfast:files/tree
rclone check tree holdfast:files/tree
rclone copyto big holdfast:files/big
rclone cat holdfast:files/big --offset 1000 --count 5000 | cmp - <(tail -c +1001 big | head -c 5000)
rm tree/7
rclone sync tree holdfast:files/tree
rclone copy holdfast:files/tree down
diff -r tree down
rclone purge holdfast:files
