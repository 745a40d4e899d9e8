// Where the bytes of a log come from: ranges of one stream, or both streams as they arrived.
import { api, data, fetchApi } from '../api/client'
import type { Schemas } from '../api/client'
import { streamOf, type Piece, type Stream } from './lines'

/** Bytes of each stream; `over`: nothing more will come. */
export type LogSizes = Schemas['LogSizes']

export async function readSizes(job: string): Promise<LogSizes[]> {
  return (await data(api.GET('/api/v1/jobs/{id}/logs/sizes', { params: { path: { id: job } } }))).items
}

/** A stretch of the log, oldest first. A cursor leads on from that side; `null` where the log ends. */
export interface Stretch<Cursor> {
  pieces: Piece[]
  earlier: Cursor | null
  later: Cursor | null
}

export interface LogSource<Cursor> {
  open(at: 'start' | 'end' | number): Promise<Stretch<Cursor>>
  earlier(cursor: Cursor): Promise<Stretch<Cursor>>
  later(cursor: Cursor): Promise<Stretch<Cursor>>
  /** What came since, of a log whose end is loaded. */
  grow(pieces: readonly Piece[]): Promise<Piece[]>
  /** Lead on from a piece that is at the side of what is in memory. */
  before(piece: Piece): Cursor | null
  after(piece: Piece): Cursor
}

const CHUNK_BYTES = 256 * 1024
/** How much of a log is read before the place that was asked for. */
const CONTEXT_BYTES = 64 * 1024

async function readRange(job: string, attempt: number, stream: Stream, from: number, to: number): Promise<Piece> {
  const query = new URLSearchParams({ attempt: `${attempt}`, stream, from: `${from}`, to: `${to}` })
  const response = await fetchApi(`api/v1/jobs/${job}/logs?${query}`)
  return { stream, from, bytes: new Uint8Array(await response.arrayBuffer()), time: null }
}

async function sizeOf(job: string, attempt: number, stream: Stream): Promise<number> {
  const sizes = await readSizes(job)
  return sizes.find((each) => each.attempt === attempt)?.[stream] ?? 0
}

/** One stream by byte ranges; its cursors are places in it. */
export function rangeSource(job: string, attempt: number, stream: Stream): LogSource<number> {
  const read = async (from: number, to: number, size: number | null): Promise<Stretch<number>> => {
    const piece = await readRange(job, attempt, stream, from, to)
    const end = from + piece.bytes.length
    const reachedEnd = size !== null ? end >= size : piece.bytes.length < to - from
    return {
      pieces: piece.bytes.length > 0 ? [piece] : [],
      earlier: from > 0 ? from : null,
      later: reachedEnd ? null : end,
    }
  }
  return {
    async open(at) {
      const size = await sizeOf(job, attempt, stream)
      if (size === 0) return { pieces: [], earlier: null, later: null }
      if (at === 'start') return read(0, Math.min(size, CHUNK_BYTES), size)
      const from = at === 'end' ? size - CHUNK_BYTES : Math.min(at, size) - CONTEXT_BYTES
      return read(Math.max(0, from), Math.min(size, Math.max(0, from) + CHUNK_BYTES), size)
    },
    earlier: (cursor) =>
      read(Math.max(0, cursor - CHUNK_BYTES), cursor, null).then((stretch) => ({ ...stretch, later: null })),
    async later(cursor) {
      const size = await sizeOf(job, attempt, stream)
      return read(cursor, Math.min(size, cursor + CHUNK_BYTES), size)
    },
    async grow(pieces) {
      const last = pieces.at(-1)
      const end = last ? last.from + last.bytes.length : 0
      const piece = await readRange(job, attempt, stream, end, end + 4 * CHUNK_BYTES)
      return piece.bytes.length > 0 ? [piece] : []
    },
    before: (piece) => (piece.from > 0 ? piece.from : null),
    after: (piece) => piece.from + piece.bytes.length,
  }
}

interface PieceInfo extends Omit<Schemas['LogPiece'], 'stream'> {
  stream: Stream
  /** Of a part: the piece that it was cut from. */
  whole?: { from: number; to: number }
}

/** Leads on from one side: infos that were read but whose bytes were not, then the number of the piece beyond. */
export interface PieceCursor {
  infos: PieceInfo[]
  /** Pieces beyond this one are read; `null` from the end of the log, `undefined` when there are no more. */
  number: number | null | undefined
}

const PIECES = 200
/** Pieces in a row that a growing log may be ahead before its end is opened anew. */
const MAX_BEHIND = 1_000

/** Both streams as they arrived, with the times at which they were read. */
export function mergedSource(job: string, attempt: number): LogSource<PieceCursor> {
  const page = async (order: 'newest' | 'oldest', cursor: number | null, limit = PIECES) => {
    const query = { attempt, order, limit, ...(cursor === null ? {} : { cursor }) }
    const read = await data(api.GET('/api/v1/jobs/{id}/logs/pieces', { params: { path: { id: job }, query } }))
    const items = read.items.map<PieceInfo>((info) => ({ ...info, stream: streamOf(info.stream) }))
    return { items, next_cursor: read.next_cursor }
  }
  const known = { last: -1 }

  const take = async (
    order: 'newest' | 'oldest',
    from: PieceCursor,
  ): Promise<{ pieces: Piece[]; rest: PieceCursor | null }> => {
    let { infos, number } = from
    if (infos.length === 0 && number !== undefined) {
      const read = await page(order, number)
      infos = read.items.flatMap((info) => (order === 'newest' ? parts(info).toReversed() : parts(info)))
      number = read.next_cursor ? read.items.at(-1)?.number : undefined
      for (const info of read.items) known.last = Math.max(known.last, info.number)
    }
    let count = 0
    for (let total = 0; count < infos.length && (total < CHUNK_BYTES || count === 0); count += 1) {
      total += (infos[count]?.to ?? 0) - (infos[count]?.from ?? 0)
    }
    const taken = infos.slice(0, count)
    const pieces = await bytesOf(job, attempt, order === 'newest' ? taken.toReversed() : taken)
    const rest = { infos: infos.slice(count), number }
    return { pieces, rest: rest.infos.length > 0 || number !== undefined ? rest : null }
  }
  return {
    async open(at) {
      const order = at === 'start' ? 'oldest' : 'newest'
      const { pieces, rest } = await take(order, { infos: [], number: null })
      return order === 'oldest' ? { pieces, earlier: null, later: rest } : { pieces, earlier: rest, later: null }
    },
    earlier: (cursor) => take('newest', cursor).then(({ pieces, rest }) => ({ pieces, earlier: rest, later: null })),
    later: (cursor) => take('oldest', cursor).then(({ pieces, rest }) => ({ pieces, earlier: null, later: rest })),
    async grow() {
      const fresh: PieceInfo[] = []
      let cursor: number | null = null
      do {
        // The next page begins where this one ends.
        // oxlint-disable-next-line no-await-in-loop
        const read: Awaited<ReturnType<typeof page>> = await page('newest', cursor, 50)
        const news = read.items.filter((info) => info.number > known.last)
        fresh.push(...news)
        cursor = news.length === read.items.length && read.next_cursor ? (read.items.at(-1)?.number ?? null) : null
      } while (cursor !== null && fresh.length < MAX_BEHIND)
      for (const info of fresh) known.last = Math.max(known.last, info.number)
      return bytesOf(job, attempt, fresh.toReversed().flatMap(parts))
    },
    before: (piece) => ({ infos: rest(piece, 'before'), number: piece.part?.number ?? null }),
    after: (piece) => ({ infos: rest(piece, 'after'), number: piece.part?.number ?? null }),
  }
}

/** What of a piece that was cut is not loaded at that side. */
function rest(piece: Piece, side: 'before' | 'after'): PieceInfo[] {
  if (piece.part === undefined) return []
  const { number, from, to } = piece.part
  const end = piece.from + piece.bytes.length
  const info = { number, stream: piece.stream, time: piece.time ?? '' }
  if (side === 'before') return piece.from > from ? parts({ ...info, from, to: piece.from }).toReversed() : []
  return end < to ? parts({ ...info, from: end, to }) : []
}

/** A piece of a program that writes fast is large; what is read at a time is not. */
function parts(info: PieceInfo): PieceInfo[] {
  const cut: PieceInfo[] = []
  for (let from = info.from; from < info.to; from += CHUNK_BYTES) {
    cut.push({
      ...info,
      from,
      to: Math.min(info.to, from + CHUNK_BYTES),
      whole: info.whole ?? { from: info.from, to: info.to },
    })
  }
  return cut
}

/** Reads each stream's stretch once and cuts it as the pieces say. `infos` is oldest first. */
async function bytesOf(job: string, attempt: number, infos: PieceInfo[]): Promise<Piece[]> {
  const ranges = new Map<Stream, { from: number; to: number }>()
  for (const { stream, from, to } of infos) {
    const range = ranges.get(stream)
    ranges.set(stream, { from: Math.min(from, range?.from ?? from), to: Math.max(to, range?.to ?? to) })
  }
  const reads = [...ranges].map(([stream, { from, to }]) => readRange(job, attempt, stream, from, to))
  const whole = new Map((await Promise.all(reads)).map((piece) => [piece.stream, piece]))
  return infos.flatMap((info) => {
    const piece = whole.get(info.stream)
    if (piece === undefined) return []
    const bytes = piece.bytes.subarray(info.from - piece.from, info.to - piece.from)
    const part = { number: info.number, ...(info.whole ?? { from: info.from, to: info.to }) }
    return bytes.length > 0 ? [{ stream: info.stream, from: info.from, bytes, time: info.time, part }] : []
  })
}
