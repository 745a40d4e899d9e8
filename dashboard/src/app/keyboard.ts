// Shortcuts: who has which keys at the moment. Single letters are off in text fields, in dialogs, and when the reader says so.
import { useEffect, useRef } from 'react'
import type { Key } from '../i18n/i18n'
import { preferences } from './preferences'

export interface Shortcut {
  /** `g j` is g, then j; `Ctrl+K` counts with ⌘ too. */
  keys: string
  label: Key
  run: () => void
}

const active: Shortcut[] = []
const SEQUENCE_MS = 1_200
let pending: { key: string; time: number } | null = null

/** The keys that do something on this page, in the order in which they were added. */
export function activeShortcuts(): readonly Shortcut[] {
  return active
}

/** Gives a page its keys while it is shown. A later one with the same keys counts before an earlier one. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts)
  useEffect(() => {
    latest.current = shortcuts
  })
  const names = shortcuts.map((shortcut) => `${shortcut.keys}\t${shortcut.label}`).join('\n')
  useEffect(() => {
    const added = names.split('\n').map((line, index) => {
      const [keys = '', label = ''] = line.split('\t')
      return { keys, label: label as Key, run: () => latest.current[index]?.run() }
    })
    active.push(...added)
    return () => {
      for (const shortcut of added) active.splice(active.indexOf(shortcut), 1)
    }
  }, [names])
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || target.matches('input:not([type=checkbox]), textarea, select')
}

/** Whether a dialog or menu has the keyboard. */
function isCovered(target: EventTarget | null): boolean {
  if (document.querySelector('[role=dialog], [role=alertdialog]') !== null) return true
  return target instanceof Element && target.closest('[role=menu], [role=listbox]') !== null
}

function find(keys: string): Shortcut | undefined {
  return active.findLast((shortcut) => shortcut.keys === keys)
}

export function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.altKey) return
  if (event.ctrlKey || event.metaKey) {
    const shortcut = event.shiftKey ? undefined : find(`Ctrl+${event.key.toUpperCase()}`)
    if (shortcut && document.querySelector('[role=dialog], [role=alertdialog]') === null) {
      event.preventDefault()
      shortcut.run()
    }
    return
  }
  // Where the key was really pressed: in a shadow root, such as the editor's, `target` is only its host.
  const target = event.composedPath()[0] ?? event.target
  if (!preferences().shortcuts || isTyping(target) || isCovered(target)) return
  const first = pending !== null && event.timeStamp - pending.time < SEQUENCE_MS ? `${pending.key} ` : ''
  pending = null
  const shortcut = find(first + event.key) ?? (first === '' ? undefined : find(event.key))
  if (shortcut) {
    event.preventDefault()
    shortcut.run()
  } else if (first === '' && active.some(({ keys }) => keys.startsWith(`${event.key} `))) {
    pending = { key: event.key, time: event.timeStamp }
  }
}
