from django.contrib.postgres.fields import ArrayField, HStoreField
from django.db import models


class Product(models.Model):
    name = models.CharField(max_length=100, unique=True)
    tags = ArrayField(models.CharField(max_length=20), default=list)
    facts = HStoreField(default=dict)
