import { expect, test } from 'vitest'
import { quote } from '../jobs/job/command-line'
import { readPairs, splitWords, writePairs } from './words'

test.each([
  ['echo hello', ['echo', 'hello']],
  ['  sh -c "echo \\"$HOME\\"; date"  ', ['sh', '-c', 'echo "$HOME"; date']],
  [`echo 'it'\\''s'`, ['echo', "it's"]],
  ['a "" b', ['a', '', 'b']],
  ['a\\ b', ['a b']],
  ['', []],
  ["sh -c 'open", null],
  ['"', null],
])('%s', (line, words) => {
  expect(splitWords(line)).toEqual(words)
})

test('what is quoted comes back', () => {
  for (const word of ['plain', '', "it's", '"x"', 'a\nb', '$(x)', '\\', '<img src=x>']) {
    expect(splitWords(quote(word))).toEqual([word])
  }
})

test('pairs come back as they were, a line without a name is told', () => {
  expect(readPairs(writePairs({ A: '1', B: 'x=y z' }))).toEqual({ pairs: { A: '1', B: 'x=y z' }, wrong: null })
  expect(readPairs('A=1\n\nnothing').wrong).toBe('nothing')
  expect(readPairs('=x').wrong).toBe('=x')
})
