// The spec as fields. What the form has no field for stays as it is.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Checkbox, FieldError, Input, Label, Radio, RadioGroup, Text, TextArea, TextField } from 'react-aria-components'
import type { Schemas } from '../api/client'
import { useT, type Key } from '../i18n/i18n'
import { quote, type Spec } from '../jobs/job/command-line'
import { meQuery } from '../session/me'
import { readPairs, splitWords, writePairs } from './words'

interface SpecFormProps {
  spec: Spec
  onChange: (spec: Spec) => void
  /** What can't be read from a field; `null` when all can. */
  onWrong: (wrong: string | null) => void
  faults: readonly Schemas['ProblemError'][]
}

type TextName =
  | 'name'
  | 'owner_id'
  | 'pool'
  | 'timeout'
  | 'start_within'
  | 'run_at'
  | 'input_path'
  | 'binary_url'
  | 'backoff'
  | 'stop_grace'
/** A plain number is seconds. */
const durations = new Set<TextName>(['timeout', 'start_within', 'backoff', 'stop_grace'])

type NumberName = 'priority' | 'max_retries'

export function SpecForm({ spec, onChange, onWrong, faults }: SpecFormProps) {
  const t = useT()
  const me = useQuery(meQuery)
  const [line, setLine] = useState(() => (spec.command ?? []).map(quote).join(' '))
  const [env, setEnv] = useState(() => writePairs(spec.env))
  const [labels, setLabels] = useState(() => writePairs(spec.labels))
  const [nodeLabels, setNodeLabels] = useState(() => writePairs(spec.node_labels))
  const faultOf = (pointer: string) =>
    faults.find((fault) => fault.pointer === pointer || fault.pointer.startsWith(`${pointer}/`))?.detail
  const change = (part: Partial<Spec>) => {
    const next: Record<string, unknown> = { ...spec, ...part }
    for (const [key, value] of Object.entries(next)) if (value === undefined) delete next[key]
    onChange(next as Spec)
  }
  const setCommand = (text: string) => {
    setLine(text)
    const words = splitWords(text)
    if (words === null) onWrong(t('submit.open_quote'))
    else change({ command: words })
  }
  const setPairs = (name: 'env' | 'labels' | 'node_labels', text: string) => {
    const { pairs, wrong } = readPairs(text)
    if (wrong !== null) onWrong(t('submit.no_pair', { line: wrong }))
    else change({ [name]: Object.keys(pairs).length > 0 ? pairs : undefined })
  }
  const textField = (name: TextName, hint?: string) => (
    <Field
      label={t(`field.${name}` as Key)}
      hint={hint}
      fault={faultOf(`/${name}`)}
      value={String(spec[name] ?? '')}
      onChange={(value) =>
        change({ [name]: durations.has(name) ? readNumber(value) : value === '' ? undefined : value })
      }
    />
  )
  const numberField = (name: NumberName, hint?: string) => (
    <Field
      label={t(`field.${name}` as Key)}
      hint={hint}
      fault={faultOf(`/${name}`)}
      value={spec[name] === undefined || spec[name] === null ? '' : String(spec[name])}
      onChange={(value) => change({ [name]: readNumber(value) })}
    />
  )
  const resource = (name: 'cpu' | 'memory', hint: string) => (
    <Field
      label={t(`resources.${name}`)}
      hint={hint}
      fault={faultOf(`/resources/${name}`)}
      value={String(spec.resources?.[name] ?? '')}
      onChange={(value) => {
        const resources = { ...spec.resources, [name]: value === '' ? undefined : readNumber(value) }
        change({ resources: resources as Spec['resources'] })
      }}
    />
  )
  return (
    <form className="spec-form" onSubmit={(event) => event.preventDefault()}>
      <TextField
        className="field whole"
        value={line}
        onChange={setCommand}
        isInvalid={faultOf('/command') !== undefined}
        autoFocus
      >
        <Label>{t('spec.command')}</Label>
        <TextArea rows={3} className="input mono" spellCheck="false" />
        <Text slot="description">{t('submit.command_hint')}</Text>
        <FieldError>{faultOf('/command')}</FieldError>
      </TextField>
      {textField('name')}
      <RadioGroup
        className="field"
        value={spec.kind ?? 'task'}
        onChange={(kind) => change({ kind: kind as Schemas['JobKind'] })}
        orientation="horizontal"
      >
        <Label>{t('column.kind')}</Label>
        <div className="row">
          {(['task', 'service'] as const).map((kind) => (
            <Radio key={kind} value={kind} className="radio">
              <span className="dot" aria-hidden="true" />
              {t(`kind.${kind}`)}
            </Radio>
          ))}
        </div>
      </RadioGroup>
      {textField('owner_id', me.data?.owners.join(', '))}
      {textField('pool', 'default')}
      {resource('cpu', '0.1')}
      {resource('memory', '128MiB')}
      {numberField('priority', '0–100')}
      {numberField('max_retries', '3')}
      {textField('timeout', '1h30m')}
      {textField('start_within', '24h')}
      {textField('backoff', '1s')}
      {textField('stop_grace', '10s')}
      {textField('run_at', '2026-12-24T18:00:00Z')}
      {textField('binary_url', 'sha256:…, s3://…')}
      {textField('input_path', 'sha256:…, s3://…')}
      <Checkbox
        className="column-choice"
        isSelected={spec.exclusive === true}
        onChange={(exclusive) => change({ exclusive: exclusive ? true : undefined })}
      >
        <span className="box" aria-hidden="true" />
        {t('field.exclusive')}
      </Checkbox>
      <Pairs
        label={t('spec.env')}
        value={env}
        fault={faultOf('/env')}
        onChange={(text) => (setEnv(text), setPairs('env', text))}
      />
      <Pairs
        label={t('column.labels')}
        value={labels}
        fault={faultOf('/labels')}
        onChange={(text) => (setLabels(text), setPairs('labels', text))}
      />
      <Pairs
        label={t('spec.node_labels')}
        value={nodeLabels}
        fault={faultOf('/node_labels')}
        onChange={(text) => (setNodeLabels(text), setPairs('node_labels', text))}
      />
    </form>
  )
}

/** A number where it is one; else the text, which the server explains. */
function readNumber(text: string): number | undefined {
  if (text.trim() === '') return undefined
  return /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : (text as unknown as number)
}

interface FieldProps {
  label: string
  hint?: string | undefined
  fault: string | undefined
  value: string
  onChange: (value: string) => void
}

function Field({ label, hint, fault, value, onChange }: FieldProps) {
  return (
    <TextField className="field" value={value} onChange={onChange} isInvalid={fault !== undefined}>
      <Label>{label}</Label>
      <Input placeholder={hint ?? ''} autoComplete="off" spellCheck="false" />
      <FieldError>{fault}</FieldError>
    </TextField>
  )
}

function Pairs({ label, fault, value, onChange }: FieldProps) {
  const t = useT()
  return (
    <TextField className="field whole" value={value} onChange={onChange} isInvalid={fault !== undefined}>
      <Label>{label}</Label>
      <TextArea rows={2} className="input mono" spellCheck="false" />
      <Text slot="description">{t('submit.pairs_hint')}</Text>
      <FieldError>{fault}</FieldError>
    </TextField>
  )
}
