// After `vite build`: measures what a first visit loads, fails over the budget, and writes .br and .gz beside what compresses.
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const BUDGET_BYTES = 250 * 1000
const dist = fileURLToPath(new URL('../dist', import.meta.url))
const manifestPath = join(dist, '.vite/manifest.json')
const manifest = JSON.parse(readFileSync(manifestPath, 'utf8'))
const gzipBytes = (file) => gzipSync(readFileSync(join(dist, file)), { level: 9 }).length

/** The chunk and all it imports at once. */
function closure(key, found = new Set()) {
  if (found.has(key)) return found
  found.add(key)
  for (const other of manifest[key].imports ?? []) closure(other, found)
  return found
}
const size = (keys) =>
  [...keys]
    .map((key) => manifest[key].file)
    .filter((file) => file.endsWith('.js'))
    .reduce((sum, file) => sum + gzipBytes(file), 0)

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry)
const catalogue = Object.keys(manifest).find((key) => key.endsWith('catalogues/zh-TW.json'))
const shell = closure(entry)
if (catalogue) closure(catalogue, shell)
const kilo = (bytes) => `${(bytes / 1000).toFixed(1)} kB`
process.stdout.write(`initial JavaScript, gzipped: ${kilo(size(shell))} (budget ${kilo(BUDGET_BYTES)})\n`)
let worst = size(shell)
for (const key of Object.keys(manifest).filter((key) => manifest[key].isDynamicEntry && /page\.tsx$/.test(key))) {
  const total = size(new Set([...shell, ...closure(key)]))
  worst = Math.max(worst, total)
  process.stdout.write(`  with ${manifest[key].name ?? key} (${key}): ${kilo(total)}\n`)
}
if (worst > BUDGET_BYTES) {
  process.stderr.write(`a first visit loads ${kilo(worst)} of JavaScript, over the budget of ${kilo(BUDGET_BYTES)}\n`)
  process.exit(1)
}
rmSync(join(dist, '.vite'), { recursive: true })

// index.html is left as it is: the server writes the base path into it.
for (const name of readdirSync(join(dist, 'assets'))) {
  if (!/\.(js|css|svg|json)$/.test(name)) continue
  const path = join(dist, 'assets', name)
  const bytes = readFileSync(path)
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }))
}
