-- The structure of the sample database Chinook (a shop of music), with rows
-- made here.
create table artist (artist_id int primary key, name varchar(120));
create table album (album_id int primary key, title varchar(160) not null, artist_id int not null references artist);
create table employee (
	employee_id int primary key, last_name varchar(20) not null, first_name varchar(20) not null, title varchar(30),
	reports_to int references employee, birth_date timestamp, hire_date timestamp, address varchar(70), city varchar(40), email varchar(60)
);
create table customer (
	customer_id int primary key, first_name varchar(40) not null, last_name varchar(20) not null, company varchar(80), address varchar(70),
	city varchar(40), state varchar(40), country varchar(40), postal_code varchar(10), phone varchar(24), fax varchar(24),
	email varchar(60) not null, support_rep_id int references employee
);
create table genre (genre_id int primary key, name varchar(120));
create table media_type (media_type_id int primary key, name varchar(120));
create table track (
	track_id int primary key, name varchar(200) not null, album_id int references album, media_type_id int not null references media_type,
	genre_id int references genre, composer varchar(220), milliseconds int not null, bytes int, unit_price numeric(10, 2) not null
);
create table playlist (playlist_id int primary key, name varchar(120));
create table playlist_track (playlist_id int references playlist, track_id int references track, primary key (playlist_id, track_id));
create table invoice (
	invoice_id int primary key, customer_id int not null references customer, invoice_date timestamp not null, billing_address varchar(70),
	billing_city varchar(40), billing_country varchar(40), total numeric(10, 2) not null
);
create table invoice_line (
	invoice_line_id int primary key, invoice_id int not null references invoice, track_id int not null references track,
	unit_price numeric(10, 2) not null, quantity int not null
);
create index on album (artist_id);
create index on customer (support_rep_id);
create index on employee (reports_to);
create index on invoice (customer_id);
create index on invoice_line (invoice_id);
create index on invoice_line (track_id);
create index on playlist_track (track_id);
create index on track (album_id);
create index on track (genre_id);
create index on track (media_type_id);

insert into artist select n, case when n % 50 = 0 then null else 'Artist Ø ' || n end from generate_series(1, 275) n;
insert into album select n, 'Album "' || n || '"', 1 + n % 275 from generate_series(1, 347) n;
insert into employee select n, 'Last ' || n, 'First', 'Title', case when n > 1 then 1 + (n - 2) / 3 end, '1962-02-18', '2002-08-14', null, 'Calgary', n || '@x' from generate_series(1, 8) n;
insert into customer select n, 'Luís', 'Last ' || n, null, E'Av.\tBrigadeiro\\' || n, 'São José', null, 'Brazil', '12227-000', null, null, n || '@example.com', 3 + n % 3 from generate_series(1, 59) n;
insert into genre select n, 'Genre ' || n from generate_series(1, 25) n;
insert into media_type select n, 'Media ' || n from generate_series(1, 5) n;
insert into track select n, 'Track ' || n, 1 + n % 347, 1 + n % 5, 1 + n % 25, case when n % 3 = 0 then 'A, B & ''C''' end, n * 1000, n * 4711, 0.99 from generate_series(1, 3503) n;
insert into playlist select n, 'Playlist ' || n from generate_series(1, 18) n;
insert into playlist_track select 1 + n % 18, 1 + n % 3503 from generate_series(1, 8715) n on conflict do nothing;
insert into invoice select n, 1 + n % 59, '2009-01-01'::timestamp + n * interval '4 days', null, null, 'Brazil', n * 0.99 from generate_series(1, 412) n;
insert into invoice_line select n, 1 + n % 412, 1 + n % 3503, 0.99, 1 from generate_series(1, 2240) n;
