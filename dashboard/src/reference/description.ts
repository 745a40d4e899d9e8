// Reads an OpenAPI description: its calls, and the shapes of what they take and give. Pure.
export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  oneOf?: Schema[]
  anyOf?: Schema[]
  allOf?: Schema[]
}
interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
}
interface Content {
  content?: Record<string, { schema?: Schema }>
  description?: string
}
interface Operation {
  summary?: string
  description?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: Content
  responses?: Record<string, Content>
}
export interface Description {
  paths: Record<string, Record<string, Operation>>
  components?: { schemas?: Record<string, Schema> }
}

export interface Call {
  method: string
  path: string
  tag: string
  summary: string
  description: string
  parameters: Parameter[]
  body: Schema | null
  answers: { status: string; description: string; schema: Schema | null }[]
  /** Nothing has to be filled in, and JSON comes back at once. */
  isPlain: boolean
}

export function callsOf(description: Description): Call[] {
  return Object.entries(description.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => {
      const answers = Object.entries(operation.responses ?? {}).map(([status, answer]) => ({
        status,
        description: answer.description ?? '',
        schema: firstSchema(answer),
      }))
      return {
        method,
        path,
        tag: operation.tags?.[0] ?? '',
        summary: operation.summary ?? '',
        description: operation.description ?? '',
        parameters: operation.parameters ?? [],
        body: operation.requestBody ? firstSchema(operation.requestBody) : null,
        answers,
        isPlain: !path.includes('{') && operation.responses?.['200']?.content?.['application/json'] !== undefined,
      }
    }),
  )
}

function firstSchema(content: Content): Schema | null {
  return Object.values(content.content ?? {})[0]?.schema ?? null
}

const MAX_DEPTH = 3

/** A shape as lines of `name: type — what it is`; a name with `?` may be left out. */
export function shapeOf(description: Description, schema: Schema, depth = 0): string {
  const target = schema.$ref === undefined ? schema : resolve(description, schema.$ref)
  if (target === undefined) return nameOf(schema)
  const part = target.oneOf?.find((each) => each.type !== 'null') ?? target.anyOf?.[0] ?? target.allOf?.[0]
  if (part && !target.properties) return shapeOf(description, part, depth)
  if (target.items && depth < MAX_DEPTH) return `[${shapeOf(description, target.items, depth)}]`
  if (!target.properties || depth >= MAX_DEPTH) return nameOf(target)
  const indent = '  '.repeat(depth + 1)
  const lines = Object.entries(target.properties).map(([name, value]) => {
    const optional = target.required?.includes(name) ? '' : '?'
    const text = value.description?.replaceAll('\n', ' ')
    return `${indent}${name}${optional}: ${shapeOf(description, value, depth + 1)}${text ? `   // ${text}` : ''}`
  })
  return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`
}

function nameOf(schema: Schema): string {
  if (schema.$ref) return schema.$ref.split('/').at(-1) ?? ''
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(' | ')
  if (schema.additionalProperties && typeof schema.additionalProperties === 'object') {
    return `{ [name]: ${nameOf(schema.additionalProperties)} }`
  }
  const types = [schema.type ?? 'any'].flat().join(' | ')
  return schema.format ? `${types} (${schema.format})` : types
}

function resolve(description: Description, ref: string): Schema | undefined {
  return description.components?.schemas?.[ref.split('/').at(-1) ?? '']
}
