// Writes the types of the API from docs/openapi.json, or with `--check` says whether they are what it describes.
import { readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString } from 'openapi-typescript'

const source = JSON.parse(await readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8'))
// Operation ids are function names there, and several have the same: by path and method each is one of its own.
for (const path of Object.values(source.paths))
  for (const operation of Object.values(path)) delete operation.operationId
const target = new URL('../src/api/schema.d.ts', import.meta.url)
const banner = '// Generated from docs/openapi.json by `npm run client`. Not to be edited.\n\n'
const text = banner + astToString(await openapiTS(source, { alphabetize: true, defaultNonNullable: false }))

if (process.argv.includes('--check')) {
  const present = await readFile(target, 'utf8').catch(() => '')
  if (present !== text) {
    process.stderr.write('src/api/schema.d.ts is stale: docs/openapi.json changed. Run `npm run client`.\n')
    process.exit(1)
  }
} else {
  await writeFile(target, text)
}
