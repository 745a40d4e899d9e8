// Bytes of one line into text that can be shown. Nothing is lost silently: what is no text is made visible. Pure.

/** A stretch of a line: text, or a byte or control character that is shown by a sign. */
export interface Stretch {
  text: string
  /** Bytes that are no UTF-8, and control characters: shown, and marked as such. */
  raw: boolean
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const ESC = 0x1b
const TAB = 0x09
const CR = 0x0d
const BEL = 0x07

/** What a terminal's sequences are made of: others look after those. */
const terminal = new Set([TAB, CR, BEL, ESC])

/** The length of the well-formed UTF-8 sequence at `at`, or 0. */
function sequence(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0
  if (first < 0x80) return 1
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
  if (first < 0xc2 || first > 0xf4 || at + length > bytes.length) return 0
  for (let index = 1; index < length; index += 1) {
    const next = bytes[at + index] ?? 0
    const low = index > 1 ? 0x80 : first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
    const high = index > 1 ? 0xbf : first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
    if (next < low || next > high) return 0
  }
  return length
}

/** Text as it is; other bytes as `\xff`, control characters as `\x00`, but for tab, CR, BEL and ESC. */
export function decode(bytes: Uint8Array): Stretch[] {
  const stretches: Stretch[] = []
  let start = 0
  let raw = ''
  const flushRaw = () => {
    if (raw !== '') stretches.push({ text: raw, raw: true })
    raw = ''
  }
  const flushText = (end: number) => {
    if (end > start) {
      flushRaw()
      stretches.push({ text: strict.decode(bytes.subarray(start, end)), raw: false })
    }
  }
  let at = 0
  while (at < bytes.length) {
    const byte = bytes[at] ?? 0
    const control = (byte < 0x20 && !terminal.has(byte)) || byte === 0x7f
    const length = control ? 0 : sequence(bytes, at)
    if (length === 0) {
      flushText(at)
      raw += `\\x${byte.toString(16).padStart(2, '0')}`
      at += 1
      start = at
    } else {
      at += length
    }
  }
  flushText(bytes.length)
  flushRaw()
  return stretches
}
