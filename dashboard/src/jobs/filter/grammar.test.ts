import { expect, test } from 'vitest'
import { addTyped, exact, searchOf, statusPasses, tokensOf, words } from './grammar'

const now = new Date('2026-11-30T12:00:00Z')
const typed = (text: string) => searchOf(addTyped([], text, now))

test.each([
  ['status:failed', { status: 'final_failed' }],
  ['status:failed,retry !owner:ops', { status: 'final_failed,retry', owner: '!ops' }],
  ['state:!success', { status: '!success' }],
  ['label.team=rev label:env:prod', { label: ['team:rev', 'env:prod'] }],
  ['!label.team=rev', { label: '!team:rev' }],
  ['submitter:ada', { submitted_by: 'ada' }],
  ['age<2h', { created_after: '2026-11-30T10:00:00.000Z' }],
  ['!age<2h', { created_before: '2026-11-30T10:00:00.000Z' }],
  ['age>1d', { created_before: '2026-11-29T12:00:00.000Z' }],
  ['nightly report', { q: 'nightly report' }],
  ['"two words" name:"a b"', { q: 'two words', name: 'a b' }],
  ['http://x status:', { q: 'http://x status:' }],
  ['exit:137', { exit: '137' }],
  ['<script>alert(1)</script>', { q: '<script>alert(1)</script>' }],
])('%s', (text, search) => {
  expect(typed(text)).toEqual(search)
})

test('a later filter takes the place of an earlier one, labels add up, free text is replaced', () => {
  const first = addTyped([], 'status:failed label.a=1 old', now)
  expect(searchOf(addTyped(first, 'status:running label.b=2 label.a=1 new', now))).toEqual({
    status: 'running',
    label: ['a:1', 'b:2'],
    q: 'new',
  })
})

test('an address comes back as it was, without what is no filter', () => {
  const search = { status: 'retry', label: ['a:1', 'b:2'], q: 'x', page: '3' }
  expect(searchOf(tokensOf(search))).toEqual({ status: 'retry', label: ['a:1', 'b:2'], q: 'x' })
})

test('an open quote goes to the end', () => {
  expect(words('a "b c')).toEqual(['a', 'b c'])
})

test.each([
  [undefined, 'running', true],
  ['running,retry', 'retry', true],
  ['running', 'retry', false],
  ['!running', 'retry', true],
  ['!running,retry', 'retry', false],
])('the filter %s and the status %s', (filter, status, passes) => {
  expect(statusPasses(filter, status)).toBe(passes)
})

test('a value that looks like a pattern is taken as it is', () => {
  expect(exact('!a,b*\\c')).toBe('\\!a\\,b\\*\\\\c')
})
