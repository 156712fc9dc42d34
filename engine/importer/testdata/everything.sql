-- One of everything a PostgreSQL database can hold that matters to a copy.
-- Run by a superuser in an empty database.

set check_function_bodies = off;
create role auditor nologin;
create role "Odd ""Role""; drop table x" nologin;
create role writer nologin;

create schema shop;
create schema "Odd ""Schema""
with a line";
comment on schema shop is 'Bücher & Co. ''quoted'' \back';

-- Extensions: trusted ones, and one that owners cannot have.
create extension hstore schema shop;
create extension citext;
create extension btree_gist;
create extension dblink;

-- Types.
create type shop.mood as enum ('sad', 'it''s ok', 'happy "!"');
create domain shop.email as citext check (value ~ '@') not null;
create domain shop.positive as int constraint over_zero check (value > 0);
create type shop.address as (street text, "Zip Code" varchar(10), moods shop.mood[]);
create type shop.span as range (subtype = float8);
comment on type shop.mood is 'how it goes';
comment on domain shop.email is 'an address';

-- Functions, procedures, aggregates, operators, casts.
create function shop.twice(n int) returns int language sql immutable as 'select n * 2';
create function shop.stamp() returns trigger language plpgsql as $$ begin new.changed := '2001-02-03'; return new; end $$;
create function shop.secret() returns text language sql security definer set search_path = shop as $$ select 'x' $$;
create function shop.later() returns bigint language sql as 'select count(*) from shop.orders_summary';
create procedure shop.nothing(in a int, inout b text) language plpgsql as $$ begin b := a::text; end $$;
create aggregate shop.longest(text) (sfunc = textcat, stype = text);
create function shop.add_mood(shop.mood, int) returns text language sql immutable as $$ select $1::text || $2 $$;
create operator shop.+ (leftarg = shop.mood, rightarg = int, function = shop.add_mood);
create function shop.mood_of(int) returns shop.mood language sql immutable as $$ select 'sad'::shop.mood $$;
create cast (int as shop.mood) with function shop.mood_of(int) as assignment;
create collation shop.german (provider = icu, locale = 'de-u-co-phonebk');
create text search dictionary shop.plain (template = pg_catalog.simple, accept = false);
create text search configuration shop.words (copy = pg_catalog.english);
alter text search configuration shop.words alter mapping for asciiword with shop.plain, english_stem;
revoke execute on function shop.secret() from public;
grant execute on function shop.secret() to auditor;

-- Sequences.
create sequence shop.numbers increment 7 minvalue -100 start 3;
create sequence shop.down increment -1;
create sequence shop.fresh as smallint cycle;
select nextval('shop.numbers'), nextval('shop.numbers'), nextval('shop.down');

-- Every kind of value.
create table shop.every_type (
	id bigint generated always as identity (start 100 increment 10) primary key,
	b boolean, i2 smallint, i4 int, i8 bigint, n numeric, n2 numeric(12, 3), r real, d double precision, m money,
	t text, v varchar(20), c char(8), bytes bytea, ts timestamp, tz timestamptz, day date, tod time, todz timetz, iv interval,
	u uuid, j json, jb jsonb, x xml, ip inet, net cidr, mac macaddr, bits bit(5), vbits varbit,
	p point, pl path, box1 box, circ circle, ir int4range, tr tstzrange, mr int4multirange, sp shop.span,
	tv tsvector, tq tsquery, h shop.hstore, ci citext, mo shop.mood, mos shop.mood[], ad shop.address, em shop.email, pos shop.positive,
	ia int[], ta text[][], ads shop.address[], snap pg_lsn, js jsonpath, reg regclass, nm name, ch "char"
);
insert into shop.every_type (b, i2, i4, i8, n, n2, r, d, m, t, v, c, bytes, ts, tz, day, tod, todz, iv, u, j, jb, x, ip, net, mac, bits, vbits,
	p, pl, box1, circ, ir, tr, mr, sp, tv, tq, h, ci, mo, mos, ad, em, pos, ia, ta, ads, snap, js, reg, nm, ch) values
	(true, -32768, 2147483647, -9223372036854775808, 'NaN', 123456789.125, 'infinity', 0.1::float8 + 0.2, '12.34',
	E'tab\t nl\n cr\r back\\ bs\b \\N \\. quote'' "d" ü €', 'v', 'c', '\x00ff5c4e0a', '2024-02-29 23:59:59.999999', 'infinity', '0044-03-15 BC',
	'24:00', '12:00+03', '-1 mons +2 days -03:04:05.6', '00000000-0000-0000-0000-000000000001', '{"a" : [1, "\u00e9"]}', '{"a": null}', '<a>b</a>',
	'::1/64', '10.0.0.0/8', '08:00:2b:01:02:03', b'10101', b'1', '(1,2)', '[(0,0),(1,1)]', '((0,0),(1,1))', '<(0,0),5>', '[1,10)', '[2024-01-01,)',
	'{[1,3),[5,7)}', '[1.5,2.5]', 'fat:1A cat:2', 'fat & !cat', 'a=>1,b=>NULL', 'CaSe', 'it''s ok', '{sad,"it''s ok"}', '("a, b ""c""",1,"{sad}")',
	'A@b', 1, '{1,NULL,3}', '{{a,"b,c"},{NULL,"\""}}', array['("x",,)'::shop.address], '16/B374D848', '$.a[*]', 'shop.numbers', 'n', 'x'),
	(null, null, null, null, null, null, null, null, null, '', '', '', '', null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
	null, null, null, null, 'empty', null, '{}', null, '', null, '', '', null, '{}', null, 'x@y', 2, '{}', '{}', null, null, null, null, '', '');
comment on table shop.every_type is 'types';
comment on column shop.every_type.j is 'json, ''as it was'' written';

-- Generated and identity columns, defaults, checks, exclusion, deferrable and circular keys.
create table shop.customers (
	id int generated by default as identity primary key,
	name text not null collate shop.german,
	price int default shop.twice(21),
	doubled int generated always as (price * 2) stored,
	"Select" text default 'it''s',
	dropped int,
	changed date,
	favourite int,
	constraint "odd check" check (length(name) > 0),
	unique (name) include (price)
);
alter table shop.customers drop column dropped;
insert into shop.customers (name, price) select 'customer ' || n, n from generate_series(1, 1000) n;
create table shop.orders (
	id bigserial primary key, customer int not null references shop.customers deferrable initially deferred, during tsrange,
	exclude using gist (customer with =, during with &&)
);
insert into shop.orders (customer, during)
	select 1 + n % 1000, tsrange('2024-01-01'::timestamp + n * interval '1 hour', '2024-01-01'::timestamp + n * interval '1 hour' + interval '30 min') from generate_series(1, 5000) n;
commit;
alter table shop.customers add constraint circular foreign key (favourite) references shop.orders on delete set null;
update shop.customers set favourite = id where id < 10;
commit;
alter table shop.orders add constraint unproven check (id <> 3) not valid;
create index orders_expression on shop.orders ((customer + 1), lower(during) desc nulls last) where customer > 10;
create index customers_lower on shop.customers using hash (lower(name));
create index customers_words on shop.customers using gin (to_tsvector('pg_catalog.english', name));
create statistics shop.related (dependencies, ndistinct) on customer, id from shop.orders;
alter table shop.customers alter name set statistics 500, alter name set storage external, alter price set (n_distinct = 5);
alter table shop.orders set (fillfactor = 70, autovacuum_enabled = false);
alter table shop.orders replica identity full;
cluster shop.orders using orders_pkey;

-- Partitions of every kind, with keys; inheritance.
create table shop.events (at date not null, kind text, id int generated by default as identity, customer int references shop.customers, primary key (at, kind, id)) partition by range (at);
create table shop.events_2023 partition of shop.events for values from ('2023-01-01') to ('2024-01-01');
create table shop.events_2024 partition of shop.events for values from ('2024-01-01') to ('2025-01-01') partition by list (kind);
create table shop.events_2024_a partition of shop.events_2024 for values in ('a', 'A''') partition by hash (id);
create table shop.events_2024_a0 partition of shop.events_2024_a for values with (modulus 2, remainder 0);
create table shop.events_2024_a1 partition of shop.events_2024_a for values with (modulus 2, remainder 1);
create table shop.events_2024_rest partition of shop.events_2024 default;
create table shop.events_rest partition of shop.events default;
create index on shop.events (customer);
insert into shop.events (at, kind, customer) select '2022-06-01'::date + n, case n % 3 when 0 then 'a' when 1 then 'A''' else 'z' end, 1 + n % 50 from generate_series(1, 1200) n;
create table shop.parent (a int, b text default 'p');
create table shop.child (c int) inherits (shop.parent);
insert into shop.parent values (1), (2);
insert into shop.child values (3, 'x', 3), (4, 'y', 4), (5, 'z', 5);

-- Odd tables and names.
create table shop.nothing_in_it ();
insert into shop.nothing_in_it default values;
insert into shop.nothing_in_it default values;
create table shop.long as select repeat('long ', 1000000) t;
create unlogged table shop.unlogged as select generate_series(1, 10) n;
create table "Odd ""Schema""
with a line"."T""able; drop schema shop; --
\! touch /tmp/holdfast-attack" ("co""l; --
" int primary key, "select" text, "ü" text);
insert into "Odd ""Schema""
with a line"."T""able; drop schema shop; --
\! touch /tmp/holdfast-attack" select n, 'x', 'ü' from generate_series(1, 3) n;
comment on column "Odd ""Schema""
with a line"."T""able; drop schema shop; --
\! touch /tmp/holdfast-attack"."ü" is 'line
\! touch /tmp/holdfast-attack
break';
create table "UPPER" ("From" int, "to" int);
insert into "UPPER" values (1, 2);

-- Views, materialized views that build on each other, rules, triggers.
create view shop.cheap with (security_barrier) as select * from shop.customers where price < 10 with cascaded check option;
create recursive view shop.counting (n) as values (1) union all select n + 1 from counting where n < 5;
create view shop.by_key as select o.id, o.customer, count(e.id) from shop.orders o left join shop.events e using (customer) group by o.id;
create materialized view shop.orders_summary as select customer, count(*) as orders from shop.orders group by customer;
create unique index on shop.orders_summary (customer);
create materialized view shop.summary_of_summary as select sum(orders) from shop.orders_summary;
create materialized view shop.not_filled as select 1 as n with no data;
comment on materialized view shop.orders_summary is 'summed';
create rule no_delete as on delete to shop.parent do instead nothing;
create trigger stamp before insert or update of name on shop.customers for each row when (new.name <> '') execute function shop.stamp();
create trigger off before update on shop.customers for each row execute function shop.stamp();
alter table shop.customers disable trigger off;
create constraint trigger late after insert on shop.orders deferrable initially deferred for each row execute function shop.stamp();
create trigger parts before insert on shop.events for each row execute function shop.stamp();
comment on trigger stamp on shop.customers is 'stamps';
create function public.on_ddl() returns event_trigger language plpgsql as 'begin end';
create event trigger on_ddl on ddl_command_start execute function public.on_ddl();
comment on event trigger on_ddl is 'nobody has it there';

-- Row security: forced, so that owners are subject to it, and hidden rows.
create table shop.notes (id int primary key, owner text, body text);
insert into shop.notes select n, case when n % 2 = 0 then 'auditor' else 'other' end, 'note ' || n from generate_series(1, 20) n;
alter table shop.notes enable row level security;
alter table shop.notes force row level security;
create policy own on shop.notes for select to auditor, "Odd ""Role""; drop table x" using (owner = current_user and body <> 'a USING b');
create policy everybody on shop.notes for insert with check (id > 0);
create policy strict on shop.notes as restrictive for update to public, writer using (true) with check (body <> '');
comment on policy own on shop.notes is 'their own';
create materialized view shop.no_notes as select count(*) filter (where false) from shop.notes; -- whoever sees how many

-- Privileges.
grant usage on schema shop to auditor, public;
grant select on all tables in schema shop to auditor;
grant select (id, name), update (name) on shop.customers to writer with grant option;
grant select on shop.parent to public;
grant all on sequence shop.numbers to "Odd ""Role""; drop table x";
alter default privileges in schema shop grant select on tables to auditor;
alter default privileges in schema shop grant insert on tables to public;
create publication some_tables for table shop.customers;

-- Large objects: empty, small, and of more than one part.
select lo_from_bytea(50001, ''), lo_from_bytea(50002, '\x00ff0a'), lo_from_bytea(50003, convert_to(repeat('0123456789abcdef', 50000), 'UTF8')), lo_create(50004);
comment on large object 50002 is 'it''s \ small';
grant select on large object 50003 to public;

-- What needs more than an owner has.
create foreign data wrapper nowhere;
create server away foreign data wrapper nowhere options (password 'server-secret');
create user mapping for auditor server away options (password 'mapping-secret');
create foreign table shop.elsewhere (n int) server away;
create subscription never connection 'host=192.0.2.1 password=subscription-secret' publication some_tables with (connect = false);

-- Labels, whose provider need not be there.
set allow_system_table_mods = on;
insert into pg_seclabel select oid, 'pg_class'::regclass, 0, 'labels', 'secret' from pg_class where relname in ('customers', 'orders');

-- The database's own settings, of which the last is the appliance's, and those of roles; and its comment.
do $$ begin
	execute format('comment on database %I is ''it''''s \\ production''', current_database());
	alter role boss set work_mem = '5MB';
	alter role boss set search_path = shop, public;
	execute format('alter role boss in database %I set work_mem = ''7MB'' ', current_database());
	execute format('alter role auditor in database %I set work_mem = ''8MB'' ', current_database());
	execute format('alter database %I set search_path = shop, "$user", public', current_database());
	execute format('alter database %I set work_mem = ''9MB''', current_database());
	execute format('alter database %I set timezone = ''Europe/Berlin''', current_database());
	execute format('alter database %I set my.own = ''it''''s, "quoted"''', current_database());
	execute format('alter database %I set log_min_messages = warning', current_database());
end $$;
