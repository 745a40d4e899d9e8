// Escape sequences of terminals: colours and links are kept, everything else goes. Pure.
import { decode } from './decode'

/** How text looks; colours are 0–255 or `#rrggbb`. */
export interface Look {
  fg?: number | string
  bg?: number | string
  bold?: boolean
  dim?: boolean
  italic?: boolean
  underline?: boolean
  inverse?: boolean
}

export interface Run {
  text: string
  look: Look
  raw: boolean
  /** An http or https address; others are dropped. */
  link?: string
}

export interface Painted {
  runs: Run[]
  /** What goes on in the next line. */
  look: Look
}

const ESC = '\u001b'
// CSI … final, OSC … BEL or ST, or a sequence of two characters.
// oxlint-disable-next-line no-control-regex
const escape = /\u001b(?:\[([0-?]*)([ -/]*)([@-~])|\]([^\u0007\u001b]*)(?:\u0007|\u001b\\|$)|[ -/]*[0-~]|$)/g

/** A line's bytes as runs of equal look. Of a line that was drawn over with CR the last state counts. */
export function paint(bytes: Uint8Array, before: Look): Painted {
  let look = before
  let link: string | undefined
  let runs: Run[] = []
  const put = (text: string, raw: boolean) => {
    if (text === '') return
    const last = runs.at(-1)
    if (last && last.look === look && last.raw === raw && last.link === link) last.text += text
    else runs.push(link === undefined ? { text, look, raw } : { text, look, raw, link })
  }
  // A CR at the very end belongs to the line's end; one before text begins the line anew.
  let returned = false
  const plain = (text: string) => {
    for (const part of text.split(/([\r\u0007])/)) {
      if (part === '\r') {
        returned = true
      } else if (part !== '') {
        if (returned) runs = []
        returned = false
        put(part === '\u0007' ? '\\x07' : part, part === '\u0007')
      }
    }
  }
  for (const stretch of decode(bytes)) {
    if (stretch.raw) {
      put(stretch.text, true)
      continue
    }
    let from = 0
    for (const match of stretch.text.matchAll(escape)) {
      plain(stretch.text.slice(from, match.index))
      from = match.index + match[0].length
      if (match[3] === 'm' && match[2] === '') look = applySgr(look, match[1] ?? '')
      if (match[4]?.startsWith('8;')) link = safeLink(match[4])
    }
    plain(stretch.text.slice(from))
  }
  return { runs, look }
}

/** Only the look after a line: for lines that are not drawn. */
export function lookAfter(bytes: Uint8Array, before: Look): Look {
  return bytes.includes(0x1b) ? paint(bytes, before).look : before
}

export function plainText(bytes: Uint8Array): string {
  return paint(bytes, {})
    .runs.map((run) => run.text)
    .join('')
}

function safeLink(osc: string): string | undefined {
  const target = osc.slice(osc.indexOf(';', 2) + 1)
  return /^https?:\/\//i.test(target) && !target.includes(ESC) ? target : undefined
}

const flags: Record<number, [keyof Look, boolean]> = {
  1: ['bold', true],
  2: ['dim', true],
  3: ['italic', true],
  4: ['underline', true],
  7: ['inverse', true],
  23: ['italic', false],
  24: ['underline', false],
  27: ['inverse', false],
}

function applySgr(before: Look, parameters: string): Look {
  const codes = parameters.split(/[;:]/).map((text) => Number(text === '' ? 0 : text))
  let look: Look = before
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0
    const flag = flags[code]
    if (code === 0) look = {}
    else if (flag) look = { ...look, [flag[0]]: flag[1] }
    else if (code === 22) look = { ...look, bold: false, dim: false }
    else if (code >= 30 && code <= 37) look = { ...look, fg: code - 30 }
    else if (code >= 90 && code <= 97) look = { ...look, fg: code - 82 }
    else if (code >= 40 && code <= 47) look = { ...look, bg: code - 40 }
    else if (code >= 100 && code <= 107) look = { ...look, bg: code - 92 }
    else if (code === 39) look = without(look, 'fg')
    else if (code === 49) look = without(look, 'bg')
    else if (code === 38 || code === 48) {
      const side = code === 38 ? 'fg' : 'bg'
      const colour = extended(codes, index + 1)
      if (colour === null) break
      look = { ...look, [side]: colour.value }
      index += colour.used
    }
  }
  return look
}

function without(look: Look, side: 'fg' | 'bg'): Look {
  const rest = { ...look }
  delete rest[side]
  return rest
}

function extended(codes: number[], at: number): { value: number | string; used: number } | null {
  if (codes[at] === 5) return { value: Math.min(255, codes[at + 1] ?? 0), used: 2 }
  if (codes[at] !== 2) return null
  const channels = [codes[at + 1], codes[at + 2], codes[at + 3]].map((each) => Math.min(255, each ?? 0))
  return { value: `#${channels.map((each) => each.toString(16).padStart(2, '0')).join('')}`, used: 4 }
}

/** The colour of 16–255 of the table that terminals share. */
export function tableColour(code: number): string {
  if (code >= 232) {
    const grey = 8 + (code - 232) * 10
    return `rgb(${grey} ${grey} ${grey})`
  }
  const cube = code - 16
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40)
  return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`
}
