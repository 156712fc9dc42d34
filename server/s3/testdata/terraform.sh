cat >main.tf <<EOF
terraform {
  backend "s3" {
    bucket                      = "state"
    key                         = "shop/terraform.tfstate"
    region                      = "us-east-1"
    endpoints                   = { s3 = "http://$HOST" }
    use_path_style              = true
    use_lockfile                = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
  }
}
variable "value" {}
resource "terraform_data" "example" { input = var.value }
output "value" { value = terraform_data.example.output }
EOF
export TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1
apply() { terraform apply -input=false -auto-approve -no-color -var "value=$1" >/dev/null; }
aws s3 mb s3://state
terraform init -input=false -no-color >/dev/null
apply first
aws s3api put-object --bucket state --key shop/terraform.tfstate.tflock --body small >/dev/null # another one has the lock
! apply second 2>error
grep -q 'Error acquiring the state lock' error
aws s3 rm s3://state/shop/terraform.tfstate.tflock
apply third
[ "$(terraform output -raw value)" = third ]
[ "$(aws s3 ls s3://state --recursive | wc -l)" = 1 ] # no lock is left
