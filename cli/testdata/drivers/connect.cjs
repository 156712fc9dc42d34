// Connects by each line of standard input: a library's name, a tab and a
// connection string. Answers each with a line: tls, clear, or refused and why.
const readline = require('node:readline')

const query = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()'

const libraries = {
  async pg(connectionString) {
    const { Client } = require('pg')
    const client = new Client({ connectionString })
    await client.connect()
    try {
      return (await client.query(query)).rows[0].ssl
    } finally {
      await client.end()
    }
  },
  async knex(connection) {
    const log = { warn() {}, error() {}, deprecate() {}, debug() {} } // standard output is for the answers
    const knex = require('knex')({ client: 'pg', connection, log, pool: { min: 0, max: 1 } })
    try {
      return (await knex.raw(query)).rows[0].ssl
    } finally {
      await knex.destroy()
    }
  },
}

async function main() {
  process.removeAllListeners('warning')
  process.on('warning', () => {}) // of what sslmode will mean one day
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [library, string] = line.split('\t')
    try {
      console.log((await libraries[library](string)) ? 'tls' : 'clear')
    } catch (e) {
      console.log('refused: ' + String(e.message || e.code || e).replaceAll('\n', ' '))
    }
  }
}

main()
