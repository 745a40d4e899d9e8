// A place in a log, as the address has it: bytes, so that it stays right however long the log is.
import type { Line, Stream } from './lines'

export interface Place {
  stream: Stream
  /** The first byte of the first line. */
  at: number
  /** The first byte of the last line. */
  to: number
}

export function placeOf(stream: unknown, at: unknown, to: unknown): Place | null {
  if ((stream !== 'stdout' && stream !== 'stderr') || typeof at !== 'string' || !/^\d+$/.test(at)) return null
  return { stream, at: Number(at), to: typeof to === 'string' && /^\d+$/.test(to) ? Number(to) : Number(at) }
}

/** Whether the line holds the first byte of the place, or begins within it. */
export function isIn(line: Line, place: Place | null): boolean {
  if (place === null || line.stream !== place.stream) return false
  const end = line.offset + line.bytes.length
  return (
    (line.offset <= place.at &&
      end >= place.at &&
      !(end === place.at && line.bytes.length > 0 && line.offset < place.at)) ||
    (line.offset > place.at && line.offset <= place.to)
  )
}
