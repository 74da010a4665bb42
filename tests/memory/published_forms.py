"""Small conversations with questions, written by hand in the formats of LoCoMo, LongMemEval and BEAM."""

from __future__ import annotations

from typing import Any

LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "boats",
        "conversation": {
            "speaker_a": "Rosa", "speaker_b": "Emil",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Rosa", "dia_id": "D1:1", "text": "I painted the boat green yesterday."},
                {"speaker": "Emil", "dia_id": "D1:2", "text": "Green suits her. My sister Klara bakes rye bread now.",
                 "blip_caption": "a loaf on a table", "query": "never to be read"},
            ],
            "session_2_date_time": "9:05 am on 2 June, 2023",
            "session_2": [
                {"speaker": "Emil", "dia_id": "D2:1", "text": "The boat leaks at the stern."},
                {"speaker": "Rosa", "dia_id": "D2:2", "text": "Then we caulk it with tar on Saturday."},
            ],
        },
        "qa": [
            {"question": "When did Rosa paint the boat?", "answer": "7 May 2023", "evidence": ["D1:1"], "category": 2},
            {"question": "What is wrong with the boat, and what do they do?", "answer": "It leaks; they caulk it",
             "evidence": ["D2:1; D2:02", "D9:1"], "category": 1},
            {"question": "Who of them sold the boat?", "adversarial_answer": "Emil", "evidence": [], "category": 5},
        ],
    }
]  # fmt: skip
LONGMEMEVAL: list[dict[str, Any]] = [
    {
        "question_id": "car_1", "question_type": "single-session-user", "question": "What colour is my car?",
        "answer": "blue", "question_date": "2023/05/22 (Mon) 09:00",
        "haystack_session_ids": ["s_a", "s_b"], "answer_session_ids": ["s_b"],
        "haystack_dates": ["2023/05/20 (Sat) 15:08", "2023/05/21 (Sun) 00:51"],
        "haystack_sessions": [
            [{"role": "user", "content": "How do I wash wool?"}, {"role": "assistant", "content": "By hand, cold."}],
            [{"role": "user", "content": "My blue car needs wax.", "has_answer": True},
             {"role": "assistant", "content": "Wax it in the shade.", "has_answer": False}],
        ],
    },
    {
        "question_id": "dog_abs", "question_type": "single-session-user", "question": "What is my dog called?",
        "answer": "You did not mention a dog.", "question_date": "2023/05/23 (Tue) 10:00",
        "haystack_session_ids": ["s_c"], "answer_session_ids": ["s_c"], "haystack_dates": ["2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [[{"role": "user", "content": "My cat is called Ink."}]],
    },
]  # fmt: skip
BEAM: list[dict[str, Any]] = [
    {
        "conversation_id": "1",
        "chat": [
            [{"role": "user", "id": 0, "content": "My talk is on March 20.", "time_anchor": "March-15-2024"},
             {"role": "assistant", "id": 1, "content": "Five days, then."}],
            [{"role": "user", "id": 2, "content": "It was moved to April 2.", "time_anchor": "March-18-2024"}],
        ],
        "probing_questions": "{'knowledge_update': [{'question': 'When is my talk?', 'answer': 'April 2', 'rubric': "
                             "['says April 2'], 'source_chat_ids': {'original_info': [0], 'updated_info': [2]}}], "
                             "'abstention': [{'question': 'Who hosts it?', 'ideal_response': 'The chat does not say.',"
                             " 'rubric': ['says that it is not known']}]}",
    }
]  # fmt: skip
