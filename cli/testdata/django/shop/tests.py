from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test import TestCase, TransactionTestCase

from shop.models import Product


class ProductTests(TestCase):
    def test_finds_what_it_stores(self):
        Product.objects.create(name="tea", tags=["hot"], facts={"from": "Assam"})
        self.assertEqual(Product.objects.get(tags__contains=["hot"], facts__from="Assam").name, "tea")

    def test_is_in_a_database_of_its_own(self):
        self.assertTrue(connection.settings_dict["NAME"].startswith("test_"))
        self.assertFalse(User.objects.exists())


class UniqueTests(TransactionTestCase):
    def test_refuses_a_second_name(self):
        Product.objects.create(name="tea")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Product.objects.create(name="tea")
