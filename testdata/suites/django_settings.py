import os

server = {"ENGINE": "django.db.backends.postgresql", "USER": os.environ["PGUSER"], "PASSWORD": os.environ["PGPASSWORD"],
          "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"]}
DATABASES = {"default": {**server, "NAME": "django"}, "other": {**server, "NAME": "django_other"}}
SECRET_KEY = "of the tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
