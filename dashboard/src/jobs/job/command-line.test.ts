import { expect, test } from 'vitest'
import { curlLine, quote, submitLine } from './command-line'

test.each([
  ['plain-1.2/x', 'plain-1.2/x'],
  ['', "''"],
  ['two words', "'two words'"],
  ["it's", `'it'\\''s'`],
  ['$(rm -rf /)', "'$(rm -rf /)'"],
  ['a\nb', "'a\nb'"],
  ['"><img src=x>', `'"><img src=x>'`],
])('the word %j is written %s', (word, quoted) => {
  expect(quote(word)).toBe(quoted)
})

test('a submission as a line of the command line', () => {
  const spec = {
    name: 'nightly report',
    labels: { team: 'rev' },
    env: { TZ: 'Asia/Taipei' },
    resources: { cpu: 0.5, memory: '256MiB' },
    timeout: 90,
    max_retries: 0,
    pool: 'default',
    command: ['sh', '-c', 'echo "$HOME"'],
  }
  expect(submitLine(spec)).toBe(
    `jobyard submit --name 'nightly report' --cpu 0.5 --memory 256MiB --max-retries 0 --timeout 90s --label team=rev --env TZ=Asia/Taipei -- sh -c 'echo "$HOME"'`,
  )
})

test('curl gets the spec as one word', () => {
  expect(curlLine({ command: ['echo', "it's"] }, 'http://x/')).toContain(`-d '{"command":["echo","it'\\''s"]}'`)
})
