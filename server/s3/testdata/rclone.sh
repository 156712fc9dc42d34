printf odd >tree/$'tab\tnewline\ndelete\x7f'
rclone() { command rclone --config rclone.configuration --s3-upload-cutoff 5M --s3-chunk-size 5M "$@"; }
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
