/**
 * Waiting items that take turns by the parties they wait for: each tenant in turn, and within a tenant each of its
 * callers.
 */

/** The parties of an item, from the widest to the narrowest, such as a tenant and its caller. */
export type Parties = ReadonlyArray<string>

/** Items that wait, each for its parties. */
export interface Turns<A> {
  /** Adds an item behind the other ones of its parties. Returns false if too many of them wait already. */
  readonly add: (parties: Parties, item: A) => boolean
  readonly remove: (parties: Parties, item: A) => void
  /** Removes and returns the next item that is admitted. Of the items of the same parties, only the first one is asked about. */
  readonly next: (admits: (parties: Parties, item: A) => boolean) => Turn<A> | undefined
}

/** An item whose turn it is. */
export interface Turn<A> {
  readonly item: A
  readonly parties: Parties
}

/** The items of a party itself, under `own`, and those of the parties within it. The first one is next. */
type Branch<A> = Map<string | typeof own, Branch<A> | Set<A>>

const own = Symbol("own")

/** Creates turns without items. At most `mostOfParty` items wait for the same parties, and `most` in all. */
export const make = <A>({ most = Infinity, mostOfParty = Infinity } = {}): Turns<A> => {
  const root: Branch<A> = new Map()
  let size = 0
  return {
    add: (parties, item) => {
      const items = itemsOf(root, parties)
      if (items.has(item)) return true
      if (size >= most || items.size >= mostOfParty) return false
      items.add(item)
      size++
      return true
    },
    remove: (parties, item) => {
      if (removed(root, parties, item)) size--
    },
    next: (admits) => {
      const turn = taken(root, [], admits)
      if (turn !== undefined) size--
      return turn
    }
  }
}

/** Returns the items of parties. An empty set is added for new parties. */
const itemsOf = <A>(root: Branch<A>, parties: Parties): Set<A> => {
  let branch = root
  for (const party of parties) {
    const found = branch.get(party)
    const inner: Branch<A> = found instanceof Map ? found : new Map()
    branch.set(party, inner)
    branch = inner
  }
  const found = branch.get(own)
  const items = found instanceof Set ? found : new Set<A>()
  branch.set(own, items)
  return items
}

/** Takes the first item whose parties are admitted, and moves them behind all others. */
const taken = <A>(
  branch: Branch<A>,
  path: Parties,
  admits: (parties: Parties, item: A) => boolean
): Turn<A> | undefined => {
  for (const [party, inner] of branch) {
    const turn =
      inner instanceof Set ? first(inner, path, admits) : taken(inner, party === own ? path : [...path, party], admits)
    if (turn === undefined) {
      if (inner.size === 0) branch.delete(party)
      continue
    }
    branch.delete(party)
    if (inner.size > 0) branch.set(party, inner)
    return turn
  }
  return undefined
}

const first = <A>(
  items: Set<A>,
  parties: Parties,
  admits: (parties: Parties, item: A) => boolean
): Turn<A> | undefined => {
  for (const item of items) {
    if (!admits(parties, item)) return undefined
    items.delete(item)
    return { item, parties }
  }
  return undefined
}

/** Removes an item, and the branches that it leaves empty. */
const removed = <A>(branch: Branch<A>, [party, ...narrower]: Parties, item: A): boolean => {
  const inner = branch.get(party ?? own)
  if (inner === undefined) return false
  const isRemoved = inner instanceof Set ? inner.delete(item) : removed(inner, narrower, item)
  if (inner.size === 0) branch.delete(party ?? own)
  return isRemoved
}
