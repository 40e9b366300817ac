/**
 * Lists that grow, and the common prefix of lists.
 */

/**
 * One version of a list that only grows.
 *
 * Versions share the items they began with, and one array of all items that were added, of which each sees a prefix.
 * The newest version appends in place, and an older version copies the added items first, so a version never changes. A
 * run has thousands of turns, and turn 1,000 must cost no more than turn 1; it may begin with the thousand messages of
 * a conversation, which are never copied to add to them.
 */
export class Growing<out A> {
  readonly length: number
  readonly #first: ReadonlyArray<A>
  readonly #added: Array<A>
  #array: ReadonlyArray<A> | undefined

  private constructor(first: ReadonlyArray<A>, added: Array<A>, array?: ReadonlyArray<A>) {
    this.length = first.length + added.length
    this.#first = first
    this.#added = added
    this.#array = array
  }

  /** Returns a first version. The array itself is never modified. */
  static of<A>(array: ReadonlyArray<A>): Growing<A> {
    return new Growing<A>(array, [], array)
  }

  /** The list as an immutable array, created on first access. */
  get array(): ReadonlyArray<A> {
    return (this.#array ??= this.after(none))
  }

  /** Returns `first` followed by the list, as one new array. */
  after(first: ReadonlyArray<A>): ReadonlyArray<A> {
    return this.#array === undefined ? first.concat(this.#first, this.#own()) : first.concat(this.#array)
  }

  at(index: number): A | undefined {
    if (index >= this.length) return undefined
    return index < this.#first.length ? this.#first[index] : this.#added[index - this.#first.length]
  }

  /** Returns whether this list extends `before`. False if that cannot be decided without comparing items. */
  grewFrom(before: Growing<A>): boolean {
    const isLater = this.#added === before.#added || (before.#added.length === 0 && this.#first === before.#first)
    return isLater && before.length <= this.length
  }

  last(): A | undefined {
    return this.at(this.length - 1)
  }

  /** Returns the last `count` items, oldest first, without creating an array of all. */
  recent(count: number): ReadonlyArray<A> {
    const from = Math.max(0, this.length - count) - this.#first.length
    return from < 0
      ? this.#first.slice(from).concat(this.#own())
      : this.#added.slice(from, this.length - this.#first.length)
  }

  append(items: ReadonlyArray<A>): Growing<A> {
    if (items.length === 0) return this
    const isNewest = this.#first.length + this.#added.length === this.length
    // An array that is pushed to has room for 17 items, so a list to which little is added gets one of its size.
    if (!isNewest || this.#added.length === 0) return new Growing(this.#first, this.#own().concat(items))
    for (const item of items) this.#added.push(item)
    return new Growing(this.#first, this.#added)
  }

  /** Returns the added items of this version. */
  #own(): ReadonlyArray<A> {
    const count = this.length - this.#first.length
    return this.#added.length === count ? this.#added : this.#added.slice(0, count)
  }
}

const none: ReadonlyArray<never> = []

/** Returns the length of the common prefix of two lists. Items are compared by identity unless `isSame` is given. */
export const commonPrefix = <A>(
  before: ReadonlyArray<A>,
  after: ReadonlyArray<A>,
  isSame: (a: A | undefined, b: A | undefined) => boolean = (a, b) => a === b
): number => {
  if (before === after) return before.length
  const end = Math.min(before.length, after.length)
  let index = 0
  while (index < end && isSame(before[index], after[index])) index++
  return index
}
