import { expect, test } from 'vitest'
import { lookAfter, paint, plainText } from './ansi'
import { decode } from './decode'

const bytes = (text: string) => new TextEncoder().encode(text)
const raw = (...codes: number[]) => new Uint8Array(codes)

test('bytes that are no UTF-8 and control characters are shown as what they are', () => {
  expect(decode(raw(0x61, 0xff, 0xfe, 0x62, 0x00, 0xc3))).toEqual([
    { text: 'a', raw: false },
    { text: '\\xff\\xfe', raw: true },
    { text: 'b', raw: false },
    { text: '\\x00\\xc3', raw: true },
  ])
})

test('overlong forms, surrogates and code points that do not exist are no text', () => {
  expect(decode(raw(0xc0, 0x80))).toEqual([{ text: '\\xc0\\x80', raw: true }])
  expect(decode(raw(0xed, 0xa0, 0x80))).toEqual([{ text: '\\xed\\xa0\\x80', raw: true }])
  expect(decode(raw(0xf4, 0x90, 0x80, 0x80))).toEqual([{ text: '\\xf4\\x90\\x80\\x80', raw: true }])
})

test('text of all planes comes through, a byte order mark too', () => {
  const text = 'é 繁體 𝄞 \uFEFFx'
  expect(decode(bytes(text))).toEqual([{ text, raw: false }])
})

test('decoding never loses or repeats a byte', () => {
  const every = Uint8Array.from({ length: 4096 }, (_, index) => (index * 7919) % 256)
  const length = decode(every).reduce((sum, { text, raw }) => sum + (raw ? text.length / 4 : bytes(text).length), 0)
  expect(length).toBe(every.length)
})

test('colours are kept, and go on in the next line', () => {
  const painted = paint(bytes('\u001b[1;31mred\u001b[0m plain \u001b[38;5;208mx\u001b[48;2;1;2;3my'), {})
  expect(painted.runs.map((run) => [run.text, run.look])).toEqual([
    ['red', { bold: true, fg: 1 }],
    [' plain ', {}],
    ['x', { fg: 208 }],
    ['y', { fg: 208, bg: '#010203' }],
  ])
  expect(lookAfter(bytes('\u001b[92mgreen'), {})).toEqual({ fg: 10 })
  expect(paint(bytes('still'), { fg: 10 }).runs[0]?.look).toEqual({ fg: 10 })
})

test.each([
  ['\u001b[2J\u001b[Htext', 'text'],
  ['\u001b]0;title\u0007text', 'text'],
  ['\u001b(Btext\u001b', 'text'],
  ['\u001b[?25ltext\u001b[', 'text'],
  ['a\u0007b', 'a\\x07b'],
  ['50%\r100%', '100%'],
  ['done\r', 'done'],
  ['10%\r\u001b[K20%\r', '20%'],
  ['<img src=x onerror=alert(1)>', '<img src=x onerror=alert(1)>'],
])('%j is shown as %j', (text, shown) => {
  expect(plainText(bytes(text))).toBe(shown)
})

test('links are kept for http and https only', () => {
  const link = (target: string) => paint(bytes(`\u001b]8;;${target}\u001b\\here\u001b]8;;\u001b\\ after`), {}).runs
  expect(link('https://example.org/a;b')).toEqual([
    { text: 'here', look: {}, raw: false, link: 'https://example.org/a;b' },
    { text: ' after', look: {}, raw: false },
  ])
  expect(link('javascript:alert(1)')).toEqual([{ text: 'here after', look: {}, raw: false }])
  expect(link('file:///etc/passwd')[0]?.link).toBeUndefined()
})
