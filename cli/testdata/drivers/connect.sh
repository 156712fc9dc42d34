# Connects by each line of standard input: a library's name, a tab and a
# connection string. Answers each with a line: tls, clear, or refused and why.
tab=$(printf '\t')
while IFS=$tab read -r library string; do
	if answer=$(psql -XAtc "select case when ssl then 'tls' else 'clear' end from pg_stat_ssl where pid = pg_backend_pid()" "$string" 2>&1 </dev/null); then
		echo "$answer"
	else
		echo "refused: $answer" | tr '\n' ' '
		echo
	fi
done
