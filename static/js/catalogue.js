/** The models a pane may use, as GET /api/models gives them. */

export const MAX_PANES = 8;
const DEFAULT_PANES = 2;

export class Catalogue {
  #models;

  constructor(models) {
    this.#models = models;
  }

  get models() {
    return this.#models;
  }

  get available() {
    return this.#models.filter(({ available }) => available);
  }

  find(id) {
    return this.#models.find((model) => model.id === id);
  }

  /** A model that has left the catalogue still has answers; its id is its name then. */
  label(id) {
    return this.find(id)?.label ?? id;
  }

  /** What a new conversation starts with. */
  defaultPanes(makeId) {
    return this.available.slice(0, DEFAULT_PANES).map(({ id }) => ({ id: makeId(), model: id, params: {} }));
  }

  /** The model that a further pane starts with: the first that no pane uses yet. */
  nextModel(panes) {
    const used = new Set(panes.map(({ model }) => model));
    return (this.available.find(({ id }) => !used.has(id)) ?? this.available[0])?.id;
  }
}
