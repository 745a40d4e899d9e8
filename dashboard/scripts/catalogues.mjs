// Checks the three catalogues: the same keys in each, every key used, every used key present, the same placeholders, every
// message well-formed. Prints all faults and ends with 1 when there is one.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from '@messageformat/parser'
import ts from 'typescript'

const root = fileURLToPath(new URL('..', import.meta.url))
const languages = ['en', 'zh-TW', 'zh-CN']
const faults = []
const catalogues = Object.fromEntries(
  languages.map((language) => [language, read(join(root, 'src/i18n/catalogues', `${language}.json`))]),
)

function read(path) {
  const text = readFileSync(path, 'utf8')
  const messages = JSON.parse(text)
  const names = [...text.matchAll(/^\s*"((?:[^"\\]|\\.)*)":/gm)].map((match) => match[1])
  for (const name of new Set(names)) {
    if (names.filter((other) => other === name).length > 1) faults.push(`${path}: "${name}" stands there twice`)
  }
  return messages
}

/** What a message takes, as sorted words: `name`, `count:plural`, `1:tag`. */
function placeholders(language, key, message) {
  const found = new Set([...message.matchAll(/<\/?(\w+)\/?>/g)].map((match) => `${match[1]}:tag`))
  const walk = (tokens) => {
    for (const token of tokens) {
      if (token.type === 'content' || token.type === 'octothorpe') continue
      found.add(token.type === 'argument' ? token.arg : `${token.arg}:${token.key ?? token.type}`)
      for (const branch of token.cases ?? []) walk(branch.tokens)
    }
  }
  try {
    walk(parse(message, { strict: false }))
  } catch (error) {
    faults.push(`${language}: "${key}" is not well-formed: ${error.message}`)
  }
  return [...found].sort().join(' ')
}

function files(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return files(path)
    return /\.tsx?$/.test(entry.name) && !/\.test\.ts$|\.d\.ts$/.test(entry.name) ? [path] : []
  })
}

// A key is used where it stands as a whole string, or where a template begins and ends as it does.
const texts = new Set()
const templates = []
for (const path of files(join(root, 'src'))) {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX)
  const visit = (node) => {
    if (ts.isStringLiteralLike(node)) texts.add(node.text)
    if (ts.isTemplateExpression(node) && /^[a-z]\w*\./.test(node.head.text)) {
      templates.push([node.head.text, node.templateSpans.at(-1).literal.text])
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
}
const used = (key) =>
  texts.has(key) || templates.some(([head, tail]) => key.startsWith(head) && key.endsWith(tail) && key !== head)

const english = catalogues['en']
for (const [key, message] of Object.entries(english)) {
  if (!used(key)) faults.push(`en: "${key}" is used nowhere`)
  const wanted = placeholders('en', key, message)
  for (const language of languages.slice(1)) {
    const other = catalogues[language][key]
    if (other === undefined) faults.push(`${language}: "${key}" is missing`)
    else if (other.trim() === '') faults.push(`${language}: "${key}" is empty`)
    else {
      const found = placeholders(language, key, other)
      // Chinese has one plural form, so a plain number may stand for a plural.
      const plain = (text) => text.replaceAll(':plural', '')
      if (plain(found) !== plain(wanted)) faults.push(`${language}: "${key}" takes [${found}], in English [${wanted}]`)
    }
  }
}
for (const language of languages.slice(1)) {
  for (const key of Object.keys(catalogues[language])) {
    if (!(key in english)) faults.push(`${language}: "${key}" is not in the English catalogue`)
  }
}
// A catalogue is written in its own script: characters of the other one are slips.
const foreign = { 'zh-TW': /[运队执节点务败网络设状态启动读]/u, 'zh-CN': /[運隊執節點務敗網絡設狀態啟動讀]/u }
for (const [language, pattern] of Object.entries(foreign)) {
  for (const [key, message] of Object.entries(catalogues[language])) {
    const hit = message.match(pattern)
    if (hit) faults.push(`${language}: "${key}" has the other script's character ${hit[0]}`)
  }
}
for (const fault of faults) process.stderr.write(`${fault}\n`)
if (faults.length > 0) process.exit(1)
process.stdout.write(`${languages.length} catalogues of ${Object.keys(english).length} messages agree\n`)
