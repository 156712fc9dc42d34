package postgres_test

import "strings"

// readOnlyAttacks returns statements by which a role that reads would write to
// what objects has created in the schema. Those with brackets may be refused with
// an SQLSTATE other than that of a missing privilege, because PostgreSQL checks
// something else first; with "warning", it may only warn and do nothing.
func readOnlyAttacks(schema, largeObject, role string) []string {
	text := strings.NewReplacer("$#", largeObject, "$", schema, "app_readonly", role).Replace(writing)
	return strings.Split(text, "\n")
}

const writing = `insert into $.t values (2)
insert into $.t select * from $.t
insert into $.t values (1) on conflict do nothing
insert into $.t default values returning *
merge into $.t using (select 1) x on true when matched then delete
update $.t set n = 2
delete from $.t
truncate $.t
with w as (insert into $.t values (2) returning *) select * from w
with w as (delete from $.t returning *) select count(*) from w
select * from $.t for update
select * from $.t for no key update
select * from $.t for share
select * from $.t for key share
insert into $.v values (2)
update $.v set n = 2
delete from $.v
insert into $.parts values (2)
insert into $.part1 values (2)
copy $.t from stdin
copy $.t to program 'touch attack'
select * into $.copied from $.t
create table $.copied as select * from $.t
create table copied (n int)
create table $.part2 partition of $.parts for values from (10) to (20)
create temp table copied (n int)
create temp view copied as select 1
create temp sequence copied
create unlogged table $.copied (n int)
create schema copied
[42P06] create schema if not exists public
create view $.copied as select 1
create materialized view $.copied as select 1
refresh materialized view $.mv
refresh materialized view concurrently $.mv
create index on $.t (n)
create sequence $.copied
create type $.copied as enum ('a')
create domain $.copied as int
create function $.copied() returns int language sql as 'select 1'
create function pg_temp.copied() returns int language sql as 'select 1'
create or replace function $.plain() returns int language sql as 'select 2'
create procedure $.copied() language sql as 'select 1'
create aggregate $.copied (int) (sfunc = int4pl, stype = int)
create operator $.# (function = int4pl, leftarg = int, rightarg = int)
create collation $.copied from "C"
create conversion $.copied for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1
create text search configuration $.copied (copy = simple)
create statistics $.copied on n, m from $.t
create trigger x before insert on $.t for each row execute function suppress_redundant_updates_trigger()
create rule x as on select to $.t do instead select 1
create policy x on $.t using (true)
create publication copied
create publication copied for table $.t
create extension hstore
create extension hstore schema $
create event trigger x on ddl_command_start execute function $.plain()
create foreign data wrapper x
create cast (int as text) without function
[42704 0A000] create language x
alter table $.t add x int
alter table $.t rename to copied
alter table $.t owner to app_readonly
alter table $.t disable row level security
alter table $.t set (fillfactor = 50)
alter table $.t replica identity full
alter sequence $.seq restart
alter view $.v rename to copied
alter materialized view $.mv rename to copied
alter function $.plain() volatile
alter schema $ rename to copied
alter schema $ owner to app_readonly
alter type $.kind add value 'c'
alter domain $.dom drop not null
alter extension plpgsql update
alter large object $# owner to app_readonly
alter default privileges for role app grant all on tables to app_readonly
alter default privileges in schema $ for role app grant all on tables to app_readonly
drop table $.t
drop view $.v
drop sequence $.seq
drop function $.plain()
drop schema $ cascade
[2BP01] drop owned by app
reassign owned by app to app_readonly
[warning] grant insert on $.t to app_readonly
[warning] grant all on all tables in schema $ to app_readonly
[warning] grant all on schema $ to app_readonly
[warning] grant create, temp on database app to app_readonly
grant app to app_readonly
grant app_readonly to app
grant pg_write_all_data to app_readonly
grant pg_read_all_data to app
grant pg_read_all_data to app_readonly
set role app
set role pg_write_all_data
set role pg_read_all_data
[warning] drop owned by app_readonly
set session authorization app
comment on table $.t is 'x'
comment on database app is 'x'
comment on large object $# is 'x'
[22023] security label on table $.t is 'x'
lock table $.t in row share mode
lock table $.t in share mode
lock table $.t in access exclusive mode
[warning] analyze $.t
[warning] vacuum $.t
[warning] vacuum full $.t
reindex table $.t
cluster $.t using t_pkey
checkpoint
select nextval('$.seq')
select setval('$.seq', 7)
[55000] select currval('$.seq')
select pg_catalog.setval('$.t_n_seq', 1, false)
select lo_create(0)
select lo_creat(-1)
select lo_from_bytea(0, 'x')
select lo_put($#, 0, 'x')
select lo_unlink($#)
select lo_truncate(lo_open($#, x'20000'::int), 0)
select lo_truncate64(lo_open($#, x'60000'::int), 0)
select lowrite(lo_open($#, x'20000'::int), 'x')
select lo_open($#, x'60000'::int)
select lo_import('/etc/passwd')
select lo_export($#, '/tmp/holdfast-attack')
update pg_largeobject set data = 'x'
delete from pg_largeobject_metadata
update pg_class set reltuples = 0
insert into pg_db_role_setting values (0, 0, '{a=b}')
select pg_logical_emit_message(false, 'a', 'b')
select pg_logical_emit_message(true, 'a', 'b')
select pg_create_physical_replication_slot('attack')
[55000] select pg_create_logical_replication_slot('attack', 'test_decoding')
select pg_replication_origin_create('attack')
select pg_switch_wal()
select pg_create_restore_point('attack')
select pg_backup_start('attack')
select pg_promote()
select pg_rotate_logfile()
select pg_reload_conf()
select pg_stat_reset()
select pg_stat_reset_single_table_counters('$.t'::regclass)
select pg_import_system_collations('$')
[42809] select brin_summarize_new_values('$.t_pkey'::regclass)
[42809] select gin_clean_pending_list('$.t_pkey'::regclass)
[0A000] select pg_extension_config_dump('$.t', '')
[0A000] select query_to_xml('insert into $.t values (2)', true, true, '')
select table_to_xml('$.t', true, true, '') from (select nextval('$.seq')) x
[0A000] select ts_stat('delete from $.t returning null::tsvector')
deallocate all; prepare x as insert into $.t values (2); execute x
explain analyze insert into $.t values (2)
[42601 42P11 0A000] declare c cursor for insert into $.t values (2) returning *
do 'begin insert into $.t values (2); end'
do 'begin execute ''drop table $.t''; end'
[25001] do 'begin set local transaction read write; insert into $.t values (2); end'
call $.proc()
select $.plain_writer()
select $.plain_reader() from $.v where $.plain_writer() > 0
[55000] begin; prepare transaction 'attack'
alter role app password 'x'
alter role app_readonly createdb
alter role app_readonly connection limit 0
alter role app_readonly nologin
alter role app_readonly valid until '2000-01-01'
[0A000] alter role app_readonly rename to copied
alter role app set work_mem = '64kB'
alter role all set work_mem = '64kB'
alter database app set work_mem = '64kB'
alter database app rename to copied
alter database app connection limit 0
alter database app owner to app_readonly
alter system set work_mem = '64kB'
drop role app_readonly
[55006] drop database app
create role copied
create database copied
create tablespace copied location '/tmp'
create subscription x connection '' publication p with (connect = false)
[42883] select dblink_connect('')
load 'auto_explain'`
