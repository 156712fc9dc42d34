-- The structure of the sample database Pagila (a shop that lends films), in
-- its essentials, with rows made here.
set check_function_bodies = off;
create type mpaa_rating as enum ('G', 'PG', 'PG-13', 'R', 'NC-17');
create domain "bıgınt" as bigint;
create domain year as integer constraint year_check check (value >= 1901 and value <= 2155);
create function _group_concat(text, text) returns text language sql immutable as $$
	select case when $2 is null then $1 when $1 is null then $2 else $1 || ', ' || $2 end $$;
create aggregate group_concat(text) (sfunc = _group_concat, stype = text);
create function last_updated() returns trigger language plpgsql as $$ begin new.last_update = current_timestamp; return new; end $$;
create function last_day(timestamptz) returns date language sql immutable strict as $$
	select (date_trunc('month', $1 at time zone 'UTC') + interval '1 month - 1 day')::date $$;

create table country (country_id serial primary key, country text not null, last_update timestamptz default now() not null);
create table city (city_id serial primary key, city text not null, country_id int not null references country on update cascade on delete restrict, last_update timestamptz default now() not null);
create table address (
	address_id serial primary key, address text not null, address2 text, district text not null,
	city_id int not null references city on update cascade on delete restrict, postal_code text, phone text not null, last_update timestamptz default now() not null
);
create table language (language_id serial primary key, name char(20) not null, last_update timestamptz default now() not null);
create table category (category_id serial primary key, name text not null, last_update timestamptz default now() not null);
create table actor (actor_id serial primary key, first_name text not null, last_name text not null, last_update timestamptz default now() not null);
create table film (
	film_id serial primary key, title text not null, description text, release_year year, language_id int not null references language on update cascade on delete restrict,
	original_language_id int references language, rental_duration smallint default 3 not null, rental_rate numeric(4, 2) default 4.99 not null,
	length smallint, replacement_cost numeric(5, 2) default 19.99 not null, rating mpaa_rating default 'G'::mpaa_rating,
	last_update timestamptz default now() not null, special_features text[], fulltext tsvector not null, revenue_projection numeric(5, 2) generated always as (rental_duration * rental_rate) stored
);
create table film_actor (actor_id int references actor, film_id int references film, last_update timestamptz default now() not null, primary key (actor_id, film_id));
create table film_category (film_id int references film, category_id int references category, last_update timestamptz default now() not null, primary key (film_id, category_id));
create table store (store_id serial primary key, manager_staff_id int not null, address_id int not null references address, last_update timestamptz default now() not null);
create table staff (
	staff_id serial primary key, first_name text not null, last_name text not null, address_id int not null references address, email text,
	store_id int not null references store, active boolean default true not null, username text not null, password text, last_update timestamptz default now() not null, picture bytea
);
create table customer (
	customer_id serial primary key, store_id int not null references store, first_name text not null, last_name text not null, email text, address_id int not null references address,
	activebool boolean default true not null, create_date date default current_date not null, last_update timestamptz default now(), active int
);
create table inventory (inventory_id serial primary key, film_id int not null references film, store_id int not null references store, last_update timestamptz default now() not null);
create table rental (
	rental_id serial primary key, rental_date timestamptz not null, inventory_id int not null references inventory, customer_id int not null references customer,
	return_date timestamptz, staff_id int not null references staff, last_update timestamptz default now() not null
);
create table payment (
	payment_id serial, customer_id int not null, staff_id int not null, rental_id int not null, amount numeric(5, 2) not null, payment_date timestamptz not null,
	primary key (payment_date, payment_id)
) partition by range (payment_date);
do $$ begin for m in 1..6 loop
	execute format('create table payment_p2022_0%s partition of payment for values from (%L) to (%L)', m, make_timestamptz(2022, m, 1, 0, 0, 0, 'UTC'), make_timestamptz(2022, m + 1, 1, 0, 0, 0, 'UTC'));
	execute format('alter table payment_p2022_0%s add foreign key (customer_id) references customer, add foreign key (rental_id) references rental, add foreign key (staff_id) references staff', m);
	execute format('create index on payment_p2022_0%s (customer_id)', m);
end loop; end $$;
create index film_fulltext_idx on film using gist (fulltext);
create index idx_title on film (title);
create unique index idx_unq_rental on rental (rental_date, inventory_id, customer_id);
create view actor_info as select a.actor_id, a.first_name, a.last_name, group_concat(distinct c.name || ': ' || f.title) as film_info
	from actor a left join film_actor fa using (actor_id) left join film f using (film_id) left join film_category fc using (film_id) left join category c using (category_id) group by a.actor_id;
create view sales_by_store as select s.store_id, sum(p.amount) as total from payment p join rental using (rental_id) join inventory i using (inventory_id) join store s on s.store_id = i.store_id group by s.store_id;
create materialized view rental_by_category as select c.name, sum(p.amount) as total_sales from payment p join rental r using (rental_id) join inventory i using (inventory_id)
	join film_category using (film_id) join category c using (category_id) group by c.name order by 2 desc;
create unique index rental_category on rental_by_category (name);
create function film_in_stock(p_film_id int, p_store_id int, out p_film_count int) returns setof int language sql as $$
	select inventory_id from inventory where film_id = $1 and store_id = $2 $$;
create function rewards_report(min_purchases int) returns setof customer language plpgsql security definer as $_$ begin return query select * from customer; end $_$;

insert into country select n, 'Country ' || n from generate_series(1, 109) n;
insert into city select n, 'City ' || n, 1 + n % 109 from generate_series(1, 600) n;
insert into address select n, n || ' Street', null, 'District', 1 + n % 600, '', '' from generate_series(1, 603) n;
insert into language select n, 'Language ' || n from generate_series(1, 6) n;
insert into category select n, 'Category ' || n from generate_series(1, 16) n;
insert into actor select n, 'FIRST', 'LAST ' || n from generate_series(1, 200) n;
insert into film (film_id, title, description, release_year, language_id, length, rating, special_features, fulltext)
	select n, 'FILM ' || n, 'A Epic Drama of a Teacher ' || n, 2006, 1 + n % 6, 46 + n % 140, (enum_range(null::mpaa_rating))[1 + n % 5],
		array['Trailers', 'Deleted Scenes'], to_tsvector('pg_catalog.english', 'film epic drama ' || n) from generate_series(1, 1000) n;
insert into film_actor select 1 + n % 200, 1 + n % 997 from generate_series(1, 5462) n on conflict do nothing;
insert into film_category select n, 1 + n % 16 from generate_series(1, 1000) n;
insert into store values (1, 1, 1), (2, 2, 2);
insert into staff values (1, 'Mike', 'Hillyer', 3, 'm@x', 1, true, 'Mike', 'hash', now(), '\x89504e47'), (2, 'Jon', 'Stephens', 4, 'j@x', 2, true, 'Jon', null, now(), null);
alter table store add foreign key (manager_staff_id) references staff;
insert into customer select n, 1 + n % 2, 'MARY', 'SMITH ' || n, null, 5 + n % 590 from generate_series(1, 599) n;
insert into inventory select n, 1 + n % 1000, 1 + n % 2 from generate_series(1, 4581) n;
insert into rental select n, '2022-01-01'::timestamptz + n * interval '15 min', 1 + n % 4581, 1 + n % 599, null, 1 + n % 2 from generate_series(1, 16044) n;
insert into payment select n, 1 + n % 599, 1 + n % 2, n, 2.99, '2022-01-02 00:00+00'::timestamptz + n * interval '15 min' from generate_series(1, 15000) n;
select setval('rental_rental_id_seq', 16044), setval('payment_payment_id_seq', 32098), setval('film_film_id_seq', 1000);
refresh materialized view rental_by_category;
create trigger film_fulltext_trigger before insert or update on film for each row execute function tsvector_update_trigger('fulltext', 'pg_catalog.english', 'title', 'description');
do $$ declare r record; begin for r in select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and attname = 'last_update'
	where relkind = 'r' and relnamespace = 'public'::regnamespace loop
	execute format('create trigger last_updated before update on %I for each row execute function last_updated()', r.relname);
end loop; end $$;
