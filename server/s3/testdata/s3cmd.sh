printf '[default]\naccess_key = %s\nsecret_key = %s\nhost_base = %s\nhost_bucket = %s\nuse_https = False\nsignature_v2 = False\n' \
  "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" "$HOST" "$HOST" >config
s3cmd() { command s3cmd -c config --no-progress "$@"; }
s3cmd mb s3://files
s3cmd put big s3://files/big
s3cmd get s3://files/big got && cmp got big
s3cmd put --multipart-chunk-size-mb=5 big s3://files/parts
s3cmd get s3://files/parts got2 && cmp got2 big
s3cmd cp s3://files/big s3://files/copy
s3cmd sync tree/ s3://files/tree/
s3cmd info s3://files/big
[ "$(s3cmd ls --recursive s3://files | wc -l)" = 53 ]
s3cmd del --recursive --force s3://files >/dev/null
s3cmd rb s3://files
