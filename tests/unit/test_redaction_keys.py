"""Which keys name a credential."""

from __future__ import annotations

import re

import pytest

from footprint_observe.redaction.keys import CREDENTIAL_HINT, hint_of, names, names_credential, words_of

_CREDENTIALS = """
password Password PASSWORD passwd userPassword user_password db.password dbpassword passwordHash password2
pwd passphrase secret clientSecret client-secret SECRET_KEY secretAccessKey
passWord pass-word Pass_Phrase
token Token accessToken access_token refresh-token idToken auth.token github_token token2 tokenValue
token_secret accessTokens api_tokens apikey apiKey api_key API-KEY X-Api-Key x.api.key APIKey api_keys
openaiApiKey authorization Authorization Proxy-Authorization credential credentials awsCredentials
privateKey private_key ssh-private-key sessionKey session_key signing_key encryptionKey
cookie Cookie Set-Cookie session_cookie cookies jwt user_jwt bearerToken csrf_token user[password]
otp userOtp pin user_pin pinCode session_id sessionId sessionid PHPSESSID JSESSIONID
recovery_codes backupCodes
mnemonic seed_phrase seedPhrase consumer_key license_key licenseKey security_answer auth
_auth http_authorization
"""
CREDENTIALS = _CREDENTIALS.split()

_OTHERS = """
max_tokens maxTokens token_count tokenCount input_tokens outputTokens total_tokens tokens num_tokens
token_type token_limit tokenBudget token_usage stop_token eos_token max_token input_token cost_per_token
prompt_tokens completion_tokens_details cached_tokens tokenizer tokenize secretary passenger passage pass
compass keyboard key primary_key sort_key foreign_key keys keyword monkey cookie_banner cookiePolicy author
authority authored order_id amount name text a 1 _ . session user_id credited accredited
next_page_token nextToken continuation_token page_token cursor_token prior_authorization authorization_status
password_changed_at passwordChangedAt password_min_length secret_name secretArn pinned pin_color spin topology
"""
OTHERS = _OTHERS.split()


@pytest.mark.parametrize("key", CREDENTIALS)
def test_a_key_that_names_a_credential_is_known(key: str) -> None:
    assert names_credential(key)


@pytest.mark.parametrize("key", [*OTHERS, "", " ", "\u00e9", "\U0001f600"])
def test_a_key_that_only_looks_like_one_is_left_alone(key: str) -> None:
    assert not names_credential(key)


@pytest.mark.parametrize(
    "key",
    [
        "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44",  # full-width letters
        "pass\u200bword",  # a character that cannot be seen
        "pa\u00adssword",
        "\u00e9t\u00e9_password",
        "pa\u017f\u017fword",  # the long s
    ],
)
def test_other_forms_of_the_letters_do_not_hide_a_name(key: str) -> None:
    assert names_credential(key)


def test_every_ascii_key_that_is_known_holds_a_hint() -> None:
    for key in CREDENTIALS:
        assert re.search(CREDENTIAL_HINT, key, re.IGNORECASE), key


@pytest.mark.parametrize(
    "key", ["birthDate", "customer-birth-date", "BIRTHDATE", "birth2date", "x.birth_date.y"]
)
def test_words_are_met_one_behind_the_other_or_as_one(key: str) -> None:
    assert names(words_of(key), ["birth", "date"])
    assert re.search(hint_of(["birth", "date"]), key, re.IGNORECASE)


@pytest.mark.parametrize("key", ["tin", "TIN", "user_tin", "userTin", "tinValue", "USER-TIN", "tin2", "2tin"])
def test_a_short_word_has_a_hint_of_its_own(key: str) -> None:
    assert names(words_of(key), ["tin"])
    assert re.search(hint_of(["tin"]), key, re.IGNORECASE)
    assert not re.search(hint_of(["tin"]), "testing the routing of a ticket, Tina", re.IGNORECASE)


@pytest.mark.parametrize("key", ["birth", "dateOfBirth", "birth_of_date", "rebirthdates", ""])
def test_other_words_are_not_met(key: str) -> None:
    assert not names(words_of(key), ["birth", "date"])


def test_a_long_key_is_judged_and_not_remembered() -> None:
    assert names_credential("x_" * 100_000 + "password")
    assert not names_credential("x_" * 100_000)
