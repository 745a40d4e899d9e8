// Pieces of a log, as they were read, put together to lines. Pure.
import { lookAfter, type Look } from './ansi'

export type Stream = 'stdout' | 'stderr'

export function streamOf(name: string): Stream {
  return name === 'stderr' ? 'stderr' : 'stdout'
}

/** Bytes `from`… of one stream. Pieces of a list follow each other as they arrived; those of one stream have no gaps. */
export interface Piece {
  stream: Stream
  from: number
  bytes: Uint8Array
  /** When it was read; unknown for plain ranges. */
  time: string | null
  /** Of pieces as they arrived: which one it is a part of, and where that one begins and ends. */
  part?: { number: number; from: number; to: number }
}

export interface Line {
  key: string
  stream: Stream
  /** Its first byte's place in the stream. */
  offset: number
  bytes: Uint8Array
  time: string | null
  /** From 1, where it is known. */
  number: number | null
  look: Look
  /** Its beginning is not loaded, or stands in the row before. */
  torn: boolean
}

/** Longer lines are shown in several rows, so that one endless line costs no more than many. */
export const MAX_ROW_BYTES = 8 * 1024

interface Open {
  offset: number
  parts: Uint8Array[]
  length: number
  time: string | null
  torn: boolean
}

/** A line of a stream whose number is known. */
export interface Anchor {
  stream: Stream
  offset: number
  number: number
}

const NEWLINE = 0x0a

/** `anchors`: known line numbers; each stream's first byte is line 1 anyway. */
export function assemble(pieces: readonly Piece[], anchors: readonly Anchor[] = []): Line[] {
  const lines: Line[] = []
  const open = new Map<Stream, Open>()
  for (const piece of pieces) {
    let current = open.get(piece.stream) ?? newLine(piece.from, piece.time, piece.from > 0)
    let start = 0
    while (start < piece.bytes.length) {
      const room = MAX_ROW_BYTES - current.length
      const newline = piece.bytes.indexOf(NEWLINE, start)
      const end = newline < 0 ? piece.bytes.length : newline
      current.time = piece.time
      if (end - start > room) {
        add(current, piece.bytes.subarray(start, start + room))
        lines.push(close(current, piece.stream))
        start += room
        current = newLine(piece.from + start, piece.time, true)
      } else {
        add(current, piece.bytes.subarray(start, end))
        start = end
        if (newline >= 0) {
          lines.push(close(current, piece.stream))
          start += 1
          current = newLine(piece.from + start, piece.time, false)
        }
      }
    }
    open.set(piece.stream, current)
  }
  // What has no line end yet stands last.
  for (const [stream, current] of open) if (current.length > 0) lines.push(close(current, stream))
  number(lines, anchors)
  carryLooks(lines)
  return lines
}

function newLine(offset: number, time: string | null, torn: boolean): Open {
  return { offset, parts: [], length: 0, time, torn }
}

function add(line: Open, part: Uint8Array) {
  if (part.length === 0) return
  line.parts.push(part)
  line.length += part.length
}

function close(line: Open, stream: Stream): Line {
  const only = line.parts[0]
  const bytes = line.parts.length === 1 && only ? only : joined(line)
  const { offset, time, torn } = line
  return { key: `${stream}:${offset}`, stream, offset, bytes, time, torn, number: null, look: {} }
}

function joined(line: Open): Uint8Array {
  const bytes = new Uint8Array(line.length)
  let at = 0
  for (const part of line.parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** Numbers go on from the first known line; rows of one long line share theirs with the first, so only that has it. */
function number(lines: Line[], anchors: readonly Anchor[]) {
  const streams = new Set(lines.map((line) => line.stream))
  for (const stream of streams) {
    const own = lines.filter((line) => line.stream === stream)
    const known = [{ stream, offset: 0, number: 1 }, ...anchors.filter((anchor) => anchor.stream === stream)]
    const at = own.findIndex((line) => known.some((anchor) => anchor.offset === line.offset))
    if (at < 0) continue
    let next = known.find((anchor) => anchor.offset === own[at]?.offset)?.number ?? 1
    for (const line of own.slice(at)) {
      if (line.torn && line.offset > 0 && line !== own[at]) continue
      line.number = next
      next += 1
    }
    next = own[at]?.number ?? 1
    for (const line of own.slice(0, at).toReversed()) {
      if (line.torn) continue
      next -= 1
      line.number = next
    }
  }
}

/** A colour that was not ended goes on in the stream's next line. */
function carryLooks(lines: Line[]) {
  const looks = new Map<Stream, Look>()
  for (const line of lines) {
    line.look = looks.get(line.stream) ?? {}
    looks.set(line.stream, lookAfter(line.bytes, line.look))
  }
}

/** Cuts pieces off at one side until at most `maxBytes` are left. */
export function trim(pieces: readonly Piece[], maxBytes: number, side: 'start' | 'end'): Piece[] {
  const kept = [...pieces]
  let total = kept.reduce((sum, piece) => sum + piece.bytes.length, 0)
  while (total > maxBytes && kept.length > 1) {
    const gone = side === 'start' ? kept.shift() : kept.pop()
    total -= gone?.bytes.length ?? 0
  }
  return kept
}
