from django.contrib.postgres.fields import ArrayField, HStoreField
from django.contrib.postgres.operations import HStoreExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        HStoreExtension(),
        migrations.CreateModel(
            "Product",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False, auto_created=True, verbose_name="ID")),
                ("name", models.CharField(max_length=100, unique=True)),
                ("tags", ArrayField(models.CharField(max_length=20), default=list)),
                ("facts", HStoreField(default=dict)),
            ],
        ),
    ]
