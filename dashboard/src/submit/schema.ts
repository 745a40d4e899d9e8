// What a JSON Schema offers at a place. Pure.
export interface JsonSchema {
  $ref?: string
  description?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, JsonSchema>
  oneOf?: JsonSchema[]
  anyOf?: JsonSchema[]
  allOf?: JsonSchema[]
  $defs?: Record<string, JsonSchema>
}

export interface SchemaOffer {
  label: string
  apply: string
  detail?: string
  info?: string
}

/** Names in the object at `path`, or the values of its `property`. */
export function offers(root: JsonSchema, path: readonly string[], property: string | null): SchemaOffer[] {
  let places = [root]
  for (const name of path)
    places = places.flatMap((place) =>
      members(root, place)
        .filter(([key]) => key === name)
        .map(([, value]) => value),
    )
  if (property === null) {
    return places.flatMap((place) =>
      members(root, place).map(([name, value]) => {
        const [first] = branches(root, value)
        return {
          // With quotes, since that is what was typed when it is looked for.
          label: `"${name}"`,
          apply: `"${name}": `,
          detail: [first?.type ?? ''].flat().join(' '),
          info: value.description ?? first?.description ?? '',
        }
      }),
    )
  }
  const values = places
    .flatMap((place) => members(root, place).filter(([name]) => name === property))
    .flatMap(([, value]) => branches(root, value))
    .flatMap(
      (branch) =>
        branch.enum ??
        ('const' in branch ? [branch.const] : [branch.type].flat().includes('boolean') ? [true, false] : []),
    )
  return values.map((value) => ({ label: JSON.stringify(value), apply: JSON.stringify(value) }))
}

/** A schema with its references and alternatives laid open. */
function branches(root: JsonSchema, schema: JsonSchema, depth = 0): JsonSchema[] {
  if (depth > 8) return []
  if (schema.$ref !== undefined) {
    const target = follow(root, schema.$ref)
    return target ? branches(root, target, depth + 1) : []
  }
  const parts = [...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]
  return [schema, ...parts.flatMap((part) => branches(root, part, depth + 1))]
}

function members(root: JsonSchema, schema: JsonSchema): [string, JsonSchema][] {
  return branches(root, schema).flatMap((branch) => Object.entries(branch.properties ?? {}))
}

function follow(root: JsonSchema, ref: string): JsonSchema | undefined {
  let place: unknown = root
  for (const step of ref.replace(/^#\//, '').split('/')) {
    if (typeof place !== 'object' || place === null) return undefined
    place = (place as Record<string, unknown>)[step.replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  return place as JsonSchema | undefined
}
