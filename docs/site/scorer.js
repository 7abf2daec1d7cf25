// How results of a search are weighed: as Sphinx does, and pages of tasks before others.
// searched.py computes the same.
const Scorer = {
  score: (result) => result[4] + (result[0].startsWith("gallery/tasks/") ? 8 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
