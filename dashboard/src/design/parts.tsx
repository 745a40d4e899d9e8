// Small parts that every page is made of.
import { useQueryClient } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { Button, Dialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import { CallError } from '../api/client'
import { useT } from '../i18n/i18n'
import { copyText } from './clipboard'
import { Icon } from './icons'

/** Copies a text; says so for a moment. */
export function Copy({ text, label }: { text: string; label: string }) {
  const t = useT()
  const [done, setDone] = useState<'copied' | 'refused' | null>(null)
  const copy = async () => {
    setDone((await copyText(text)) ? 'copied' : 'refused')
    setTimeout(() => setDone(null), 1_500)
  }
  return (
    <Button className="button quiet icon" aria-label={label} onPress={() => void copy()}>
      <Icon name={done === 'copied' ? 'done' : done === 'refused' ? 'close' : 'copy'} />
      <span role="status" className="hidden-text">
        {done === 'copied' ? t('copy.done') : done === 'refused' ? t('copy.refused') : ''}
      </span>
    </Button>
  )
}

/** A command line that can be copied. */
export function Command({ text }: { text: string }) {
  const t = useT()
  return (
    <div className="command">
      <pre>{text}</pre>
      <Copy text={text} label={t('copy.command')} />
    </div>
  )
}

interface PanelProps {
  title: ReactNode
  aside?: ReactNode
  children: ReactNode
  /** Without padding: for tables and charts. */
  flush?: boolean
}

export function Panel({ title, aside, children, flush = false }: PanelProps) {
  return (
    <section className="panel">
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {flush ? children : <div className="body">{children}</div>}
    </section>
  )
}

/** What went wrong, what the server said of it, and a way to try again. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const t = useT()
  const client = useQueryClient()
  const again =
    retry ?? (() => void client.refetchQueries({ type: 'active', predicate: (query) => query.state.error !== null }))
  return (
    <div className="notice error" role="alert">
      <div className="stack">
        <FailureText error={error} />
        <div>
          <Button className="button" onPress={again}>
            {t('failure.again')}
          </Button>
        </div>
      </div>
    </div>
  )
}

/** The same without a way to try again: beside a form. */
export function FailureText({ error }: { error: unknown }) {
  const t = useT()
  if (!(error instanceof CallError)) return <p>{error instanceof Error ? error.message : String(error)}</p>
  return (
    <div>
      <p>
        <strong>{headline(error, t)}</strong>
      </p>
      {error.status > 0 && (
        <p>
          {error.message} <code className="muted">{error.code}</code>
        </p>
      )}
      {error.faults.map((fault) => (
        <p key={`${fault.pointer} ${fault.code}`}>
          <code>{fault.pointer}</code> {fault.detail}
        </p>
      ))}
    </div>
  )
}

function headline(error: CallError, t: ReturnType<typeof useT>): string {
  if (error.status === 0) return t('failure.unreachable')
  if (error.status === 403) return t('failure.forbidden')
  if (error.status === 404) return t('failure.not_found')
  if (error.status === 429 || error.status === 503) return t('failure.busy')
  return t('failure.refused')
}

export function Loading() {
  const t = useT()
  return (
    <p className="muted loading" role="status">
      {t('loading')}
    </p>
  )
}

interface ConfirmProps {
  title: string
  children?: ReactNode
  action: string
  danger?: boolean
  busy?: boolean
  error?: unknown
  onConfirm: () => void
  onClose: () => void
}

/** Asks before something that is not undone easily. */
export function Confirm({
  title,
  children,
  action,
  danger = false,
  busy = false,
  error,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const t = useT()
  return (
    <Window title={title} onClose={onClose} alert>
      {children}
      {error ? (
        <div className="notice error" role="alert">
          <FailureText error={error} />
        </div>
      ) : null}
      <footer>
        <Button className="button" onPress={onClose}>
          {t('dialog.back')}
        </Button>
        <Button className={`button primary ${danger ? 'danger' : ''}`} isDisabled={busy} onPress={onConfirm} autoFocus>
          {action}
        </Button>
      </footer>
    </Window>
  )
}

interface WindowProps {
  title: string
  children: ReactNode
  onClose: () => void
  alert?: boolean
  wide?: boolean
}

export function Window({ title, children, onClose, alert = false, wide = false }: WindowProps) {
  return (
    <ModalOverlay className="veil" isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={wide ? 'dialog wide' : 'dialog'}>
        <Dialog role={alert ? 'alertdialog' : 'dialog'}>
          <Heading slot="title" level={2}>
            {title}
          </Heading>
          {children}
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}

export function Labels({ labels }: { labels: Record<string, string> }) {
  const entries = Object.entries(labels)
  if (entries.length === 0) return null
  return (
    <span className="labels">
      {entries.map(([key, value]) => (
        <span key={key} className="label-chip" title={`${key}=${value}`}>
          {value === '' ? key : `${key}=${value}`}
        </span>
      ))}
    </span>
  )
}
