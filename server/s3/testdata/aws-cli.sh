aws s3 mb s3://files
aws s3 cp small s3://files/a/small
aws s3 cp big s3://files/big --no-progress
aws s3 cp s3://files/big - | cmp - big
aws s3 sync tree s3://files/tree --no-progress
aws s3 sync s3://files/tree down --no-progress
diff -r tree down
aws s3 cp s3://files/big s3://files/copy --no-progress
aws s3 cp s3://files/copy - | cmp - big
[ "$(aws s3 ls s3://files --recursive | wc -l)" = 53 ]
! aws s3api put-object --bucket files --key big --body small --if-none-match '*'
aws configure set default.s3.signature_version s3v4
curl -fsS "$(aws s3 presign s3://files/big)" | cmp - big
aws s3api put-bucket-policy --bucket files --policy \
	'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::files/*"}]}'
aws s3 website s3://files --index-document small --error-document big
curl -fsS -H "Host: files.web.test" "http://$HOST/a/" | cmp - small
[ "$(aws s3api get-bucket-website --bucket files --query IndexDocument.Suffix --output text)" = small ]
aws s3api delete-bucket-website --bucket files
aws s3 rb s3://files --force >/dev/null
