import { expect, test } from 'vitest'
import { assemble, MAX_ROW_BYTES, trim, type Piece, type Stream } from './lines'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const piece = (stream: Stream, from: number, text: string): Piece => ({
  stream,
  from,
  bytes: encoder.encode(text),
  time: null,
})
const shown = (pieces: Piece[]) =>
  assemble(pieces).map((line) => [line.stream, line.number, decoder.decode(line.bytes)])

test('a line is whole however it was cut into pieces', () => {
  const text = 'one\ntwo\n\nthree 繁'
  const bytes = encoder.encode(text)
  const wanted = text.split('\n')
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const pieces: Piece[] = [
      { stream: 'stdout', from: 0, bytes: bytes.subarray(0, cut), time: null },
      { stream: 'stdout', from: cut, bytes: bytes.subarray(cut), time: null },
    ]
    expect(assemble(pieces).map((line) => decoder.decode(line.bytes))).toEqual(wanted)
  }
})

test('streams are put together apart, and stand as their lines ended', () => {
  const pieces = [piece('stdout', 0, 'out 1\nout '), piece('stderr', 0, 'err 1\n'), piece('stdout', 10, '2\n')]
  expect(shown(pieces)).toEqual([
    ['stdout', 1, 'out 1'],
    ['stderr', 1, 'err 1'],
    ['stdout', 2, 'out 2'],
  ])
})

test('a window in the middle has no numbers until one is known', () => {
  const pieces = [piece('stdout', 100, 'rest\nnext\nlast\n')]
  expect(shown(pieces).map(([, number]) => number)).toEqual([null, null, null])
  const numbered = assemble(pieces, [{ stream: 'stdout', offset: 110, number: 42 }])
  expect(numbered.map((line) => line.number)).toEqual([null, 41, 42])
  expect(numbered[0]?.torn).toBe(true)
})

test('an endless line becomes rows that share one number', () => {
  const rows = assemble([piece('stdout', 0, `${'x'.repeat(MAX_ROW_BYTES * 2 + 5)}\nend\n`)])
  expect(rows.map((line) => [line.bytes.length, line.number, line.torn])).toEqual([
    [MAX_ROW_BYTES, 1, false],
    [MAX_ROW_BYTES, null, true],
    [5, null, true],
    [3, 2, false],
  ])
})

test('a line of exactly the row length is one row', () => {
  expect(assemble([piece('stdout', 0, `${'x'.repeat(MAX_ROW_BYTES)}\nend`)]).map((line) => line.number)).toEqual([1, 2])
})

test('colours go on in the next line of the same stream only', () => {
  const lines = assemble([piece('stdout', 0, '\u001b[31mred\nstill\u001b[0m\nplain\n'), piece('stderr', 0, 'other\n')])
  expect(lines.map((line) => line.look)).toEqual([{}, { fg: 1 }, {}, {}])
})

test('a window keeps its end or its beginning', () => {
  const pieces = [piece('stdout', 0, 'aaaa'), piece('stdout', 4, 'bbbb'), piece('stdout', 8, 'cccc')]
  expect(trim(pieces, 8, 'start').map((each) => each.from)).toEqual([4, 8])
  expect(trim(pieces, 8, 'end').map((each) => each.from)).toEqual([0, 4])
  expect(trim(pieces, 1, 'start').map((each) => each.from)).toEqual([8])
})
