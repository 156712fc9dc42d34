// Uploads with tus-js-client: once in one go, and once broken off and resumed.
// Arguments: endpoint, key.
const tus = require('tus-js-client')

const [endpoint, key] = process.argv.slice(2)
const body = Buffer.from('0123456789'.repeat(300000))

function upload(name, options) {
  return new Promise((resolve, reject) => {
    const u = new tus.Upload(body, {
      endpoint,
      headers: { Authorization: 'Bearer ' + key },
      metadata: { key: name, content_type: 'text/plain' },
      chunkSize: 1000000,
      retryDelays: null,
      onError: reject,
      onSuccess: () => resolve(u),
      ...options(() => u, resolve),
    })
    u.start()
  })
}

async function main() {
  await upload('from node', () => ({}))
  const broken = await upload('resumed', (u, resolve) => ({
    onChunkComplete: () => u().abort().then(() => resolve(u())),
  }))
  await upload('resumed', () => ({ uploadUrl: broken.url }))
}

main().catch((err) => {
  console.error(err)
  process.exit(1)
})
