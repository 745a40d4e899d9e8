// The spec as JSON, completed from the schema that the server serves.
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  type CompletionContext,
  type CompletionResult,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting, syntaxTree } from '@codemirror/language'
import { linter, lintKeymap } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { useQuery } from '@tanstack/react-query'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { api, data } from '../api/client'
import { useT } from '../i18n/i18n'
import { offers, type JsonSchema } from './schema'

const theme = EditorView.theme({
  '&': { backgroundColor: 'var(--log-page)', color: 'var(--text)', fontSize: '13px', minHeight: '420px' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--muted)', border: 'none' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused': { outline: '2px solid var(--focus)' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { backgroundColor: 'var(--chosen) !important' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--chosen)', color: 'var(--text)' },
  '.cm-completionInfo': { maxWidth: '360px', padding: '6px 10px' },
})
const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--running)' },
  { tag: tags.string, color: 'var(--success)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--retry)' },
])

interface EditorProps {
  text: string
  onChange: (text: string) => void
}

export default function Editor({ text, onChange }: EditorProps) {
  const t = useT()
  const box = useRef<HTMLDivElement>(null)
  const start = useRef(text)
  const latest = useRef(onChange)
  const schema = useQuery({
    queryKey: ['schema', 'job'],
    queryFn: async () => (await data(api.GET('/api/v1/schemas/job'))) as JsonSchema,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
  const known = useRef<JsonSchema | undefined>(undefined)
  useEffect(() => {
    latest.current = onChange
    known.current = schema.data
  })
  const label = t('submit.editor')
  useEffect(() => {
    if (box.current === null) return
    // In a shadow root its styles are adopted sheets; elsewhere a style element, which the policy refuses.
    const shadow = box.current.shadowRoot ?? box.current.attachShadow({ mode: 'open' })
    const view = new EditorView({
      root: shadow,
      parent: shadow,
      state: EditorState.create({
        doc: start.current,
        extensions: [
          lineNumbers(),
          history(),
          bracketMatching(),
          closeBrackets(),
          indentOnInput(),
          json(),
          linter(jsonParseLinter()),
          autocompletion({ override: [(context) => complete(context, known.current)] }),
          syntaxHighlighting(colours),
          theme,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label }),
          // Tab moves on to the next control, as everywhere on the page.
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) {
              start.current = update.state.doc.toString()
              latest.current(start.current)
            }
          }),
        ],
      }),
    })
    return () => view.destroy()
  }, [label])
  return <div ref={box} className="editor" />
}

function complete(context: CompletionContext, schema: JsonSchema | undefined): CompletionResult | null {
  if (schema === undefined) return null
  const word = context.matchBefore(/"?[\w]*/)
  if (word === null || (word.from === word.to && !context.explicit)) return null
  const path: string[] = []
  let property: string | null = null
  let inKey = true
  const text = (from: number, to: number) => context.state.sliceDoc(from, to).replaceAll('"', '')
  for (
    let node = syntaxTree(context.state).resolveInner(context.pos, -1).node as
      ReturnType<typeof syntaxTree>['topNode'] | null;
    node;
    node = node.parent
  ) {
    if (node.name !== 'Property') continue
    const name = node.getChild('PropertyName')
    if (name === null) continue
    const isValue =
      context.pos > name.to &&
      property === null &&
      path.length === 0 &&
      context.state.sliceDoc(name.to, context.pos).includes(':')
    if (isValue && !context.state.sliceDoc(name.to, context.pos).includes('{')) {
      property = text(name.from, name.to)
      inKey = false
    } else if (context.pos > name.to) {
      path.unshift(text(name.from, name.to))
    }
  }
  const found = offers(schema, path, inKey ? null : property)
  if (found.length === 0) return null
  // The quote that was closed by itself behind the cursor goes with what is replaced.
  const to = context.state.sliceDoc(context.pos, context.pos + 1) === '"' ? context.pos + 1 : context.pos
  return { from: word.from, to, options: found }
}
