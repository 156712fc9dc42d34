# Connects by each line of standard input: a library's name, a tab and a
# connection string. Answers each with a line: tls, clear, or refused and why.
import asyncio
import sys

QUERY = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"


def use_asyncpg(string):
    import asyncpg

    async def ask():
        connection = await asyncpg.connect(string)
        try:
            return await connection.fetchval(QUERY)
        finally:
            await connection.close()

    return asyncio.run(ask())


def use_psycopg(string):
    import psycopg

    with psycopg.connect(string) as connection:
        return connection.execute(QUERY).fetchone()[0]


def use_sqlalchemy(string):
    import sqlalchemy

    with sqlalchemy.create_engine(string).connect() as connection:
        return connection.execute(sqlalchemy.text(QUERY)).scalar()


for line in sys.stdin:
    library, string = line.rstrip("\n").split("\t")
    try:
        encrypted = globals()["use_" + library](string)
        print("tls" if encrypted else "clear")
    except Exception as e:
        print("refused:", str(e).replace("\n", " "))
