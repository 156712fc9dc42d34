package parameters

// The areas of the catalogue.
const (
	areaTimeouts = "Timeouts"
	areaMemory   = "Memory"
	areaPlanner  = "Planner"
	areaParallel = "Parallel work"
	areaVacuum   = "Vacuum"
	areaLogging  = "Log and statistics"
	areaSessions = "Sessions"
)

const (
	longest = "24d"   // fits 31 bits of milliseconds
	most    = "1TB"   // of memory, beside a share
	huge    = "1e+10" // of the planner's costs
)

func timeouts() []Parameter {
	timeout := func(name string) Parameter {
		return Parameter{Name: name, Kind: Duration, Unit: "ms", Min: "0", Max: longest, Area: areaTimeouts}
	}
	return []Parameter{
		timeout("statement_timeout"), timeout("lock_timeout"),
		timeout("idle_in_transaction_session_timeout"), timeout("idle_session_timeout"),
		{Name: "deadlock_timeout", Kind: Duration, Unit: "ms", Min: "10ms", Max: "1h", Area: areaTimeouts},
	}
}

// memory has what a session, a worker or the lock table may take.
func memory() []Parameter {
	return []Parameter{
		{Name: "work_mem", Kind: Memory, Unit: "kB", Min: "64kB", Max: "2GB", Share: 32, Area: areaMemory},
		{Name: "hash_mem_multiplier", Kind: Number, Min: "1", Max: "4", Area: areaMemory},
		{Name: "maintenance_work_mem", Kind: Memory, Unit: "kB", Min: "1MB", Max: "4GB", Share: 8, Area: areaMemory},
		{Name: "autovacuum_work_mem", Kind: Memory, Unit: "kB", Min: "1MB", Max: "1GB", Share: 16, Off: "-1", Area: areaMemory},
		{Name: "temp_buffers", Kind: Memory, Unit: "8kB", Min: "800kB", Max: "1GB", Share: 32, Area: areaMemory},
		{Name: "max_locks_per_transaction", Kind: Integer, Min: "32", Max: "1024", Area: areaMemory},
		{Name: "max_pred_locks_per_transaction", Kind: Integer, Min: "64", Max: "1024", Area: areaMemory},
	}
}

func planner() []Parameter {
	cost := func(name string) Parameter {
		return Parameter{Name: name, Kind: Number, Min: "0", Max: huge, Area: areaPlanner}
	}
	onOff := func(name string) Parameter { return Parameter{Name: name, Kind: Boolean, Area: areaPlanner} }
	count := func(name, least, most string) Parameter {
		return Parameter{Name: name, Kind: Integer, Min: least, Max: most, Area: areaPlanner}
	}
	return []Parameter{
		{Name: "effective_cache_size", Kind: Memory, Unit: "8kB", Min: "8kB", Max: most, Area: areaPlanner},
		cost("random_page_cost"), cost("seq_page_cost"),
		cost("cpu_tuple_cost"), cost("cpu_index_tuple_cost"), cost("cpu_operator_cost"),
		count("effective_io_concurrency", "0", "1000"),
		count("default_statistics_target", "1", "10000"),
		count("from_collapse_limit", "1", "100"), count("join_collapse_limit", "1", "100"),
		onOff("jit"), onOff("enable_partitionwise_join"), onOff("enable_partitionwise_aggregate"),
		{Name: "plan_cache_mode", Kind: Choice, Values: []string{"auto", "force_generic_plan", "force_custom_plan"}, Area: areaPlanner},
		{Name: "constraint_exclusion", Kind: Choice, Values: []string{"partition", "on", "off"}, Area: areaPlanner},
	}
}

func parallel() []Parameter {
	workers := func(name, least string) Parameter {
		return Parameter{Name: name, Kind: Integer, Min: least, Max: "8", Area: areaParallel}
	}
	return []Parameter{
		workers("max_parallel_workers", "0"), workers("max_parallel_workers_per_gather", "0"), workers("max_parallel_maintenance_workers", "0"),
		{Name: "max_worker_processes", Kind: Integer, Min: "4", Max: "16", Area: areaParallel},
	}
}

// vacuum has what tunes autovacuum; it cannot be switched off.
func vacuum() []Parameter {
	rows := func(name, off string) Parameter {
		return Parameter{Name: name, Kind: Integer, Min: "0", Max: "1000000000", Off: off, Area: areaVacuum}
	}
	part := func(name string) Parameter {
		return Parameter{Name: name, Kind: Number, Min: "0", Max: "1", Area: areaVacuum}
	}
	return []Parameter{
		rows("autovacuum_vacuum_threshold", ""), rows("autovacuum_analyze_threshold", ""), rows("autovacuum_vacuum_insert_threshold", "-1"),
		part("autovacuum_vacuum_scale_factor"), part("autovacuum_analyze_scale_factor"), part("autovacuum_vacuum_insert_scale_factor"),
		{Name: "autovacuum_naptime", Kind: Duration, Unit: "s", Min: "5s", Max: "1h", Area: areaVacuum},
		{Name: "autovacuum_max_workers", Kind: Integer, Min: "1", Max: "8", Area: areaVacuum},
		{Name: "autovacuum_vacuum_cost_limit", Kind: Integer, Min: "1", Max: "10000", Off: "-1", Area: areaVacuum},
		{Name: "autovacuum_vacuum_cost_delay", Kind: Duration, Unit: "ms", Min: "0", Max: "100ms", Off: "-1", Area: areaVacuum},
	}
}

func logging() []Parameter {
	from := func(name string) Parameter {
		return Parameter{Name: name, Kind: Duration, Unit: "ms", Min: "0", Max: longest, Off: "-1", Area: areaLogging}
	}
	onOff := func(name string) Parameter { return Parameter{Name: name, Kind: Boolean, Area: areaLogging} }
	return []Parameter{
		from("log_min_duration_statement"), from("log_autovacuum_min_duration"),
		{Name: "log_temp_files", Kind: Memory, Unit: "kB", Min: "0", Max: most, Off: "-1", Area: areaLogging},
		onOff("log_lock_waits"), onOff("track_io_timing"), onOff("track_commit_timestamp"),
		{Name: "track_functions", Kind: Choice, Values: []string{"none", "pl", "all"}, Area: areaLogging},
		{Name: "track_activity_query_size", Kind: Memory, Unit: "B", Min: "100B", Max: "64kB", Area: areaLogging},
	}
}

func sessions() []Parameter {
	choice := func(name string, values ...string) Parameter {
		return Parameter{Name: name, Kind: Choice, Values: values, Area: areaSessions}
	}
	return []Parameter{
		{Name: "timezone", Kind: Text, Area: areaSessions},
		{Name: "max_prepared_transactions", Kind: Integer, Min: "0", Max: "200", Area: areaSessions},
		choice("default_transaction_isolation", "read committed", "repeatable read", "serializable"),
		choice("intervalstyle", "postgres", "postgres_verbose", "sql_standard", "iso_8601"),
		choice("bytea_output", "hex", "escape"),
	}
}
